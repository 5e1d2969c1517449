"""What boards share: a table of scores, means and ranks of the methods, targets, the picture.

Every board stores a table ``scores``: a row for each method, item (a table, a scene, a scan, a pair
of images) and seed. Items weigh alike: seeds are averaged first. A peer that is not installed has
rows as well, with a note and no values.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Experiment, Results, Row, Settings, Tables
from studies.boards._files import SOURCES

SCORES = "scores"
CLEARLY = 0.005  # of AUC or F1: smaller differences are called equal
NOT_INSTALLED = "not installed"
T = TypeVar("T")


class Measure(NamedTuple):
    """A column of the scores."""

    column: str
    label: str
    sign: int = 1  # -1 if smaller is better, 0 if neither is
    digits: int = 3
    over: Callable[[Array], Any] = np.mean  # how the items become one number


class Target(NamedTuple):
    """What a board must reach, and what it has. NaN where a peer was missing."""

    what: str
    value: float
    goal: float
    sign: int = 1  # -1: at most

    @property
    def met(self) -> str:
        """Whether it is reached, in a word."""
        if not (math.isfinite(self.value) and math.isfinite(self.goal)):
            return "not measured"
        # Stored numbers have six digits, so sums of them may miss by the last one.
        return "met" if self.sign * (self.value - self.goal) >= -1e-9 else "**missed**"


class Line(NamedTuple):
    """A method among the others, over all items of a group."""

    method: str
    values: tuple[float, ...]  # by measure; NaN where an item has none
    rank: float  # mean over the items; NaN for yardsticks
    ahead: list[tuple[float, Any]]  # by how much it is clearly better than ours, and where
    seconds: float  # median
    note: str


@dataclass(frozen=True)
class Board:
    """One kind of data, with the method that the documentation recommends for it and its peers."""

    name: str
    title: str
    about: str
    own: str  # the call, as it is shown
    item: str  # what a row is about, in a word
    measures: tuple[Measure, ...]  # the first one ranks
    targets: Callable[["Board", Results], list[Target]]
    items: Callable[[Settings], list[Case]]  # cases without their seed
    sources: tuple[str, ...] = ()  # of `SOURCES`
    seeds: int = 3  # of a full run, for items that do not say
    xlim: tuple[float, float] | None = None  # of the picture
    yardsticks: frozenset[str] = field(default_factory=frozenset)  # know the truth: without rank

    def experiment(self, run: Callable[[Case], Tables], **more: Any) -> Experiment:
        """Return the study that runs the board."""
        draw = more.pop("draw", lambda _: {})
        return Experiment(
            name=self.name,
            title=self.title,
            about=self.about,
            cases=self.cases,
            run=run,
            draw=lambda results: {SCORES: picture(self, results), **draw(results)},
            **more,
        )

    def cases(self, settings: Settings) -> list[Case]:
        """Return one case for each item and seed."""
        found = []
        for item in self.items(settings):
            own = item.pop("seeds", self.seeds)
            seeds = settings.seeds or (1 if settings.quick else own)
            found += [{**item, "seed": seed} for seed in range(seeds)]
        return found

    def rows(self, given: Row, found: Iterable[Row]) -> list[Row]:
        """Return rows with all columns that the board has."""
        columns = [*(measure.column for measure in self.measures), "seconds", "note"]
        empty: Row = {"group": "", **given, "method": "", **dict.fromkeys(columns), "note": ""}
        return [{**empty, **row} for row in found]

    # -- from the scores to the page -------------------------------------------------------------

    def groups(self, results: Results) -> list[str]:
        """Return the groups of items that are compared separately."""
        return results.values(SCORES, "group")

    def lines(self, results: Results, group: str = "") -> list[Line]:
        """Return the methods, the best first."""
        rows = results.rows(SCORES, group=group)
        methods = list(dict.fromkeys(row["method"] for row in rows))
        tables = [by_item(rows, methods, measure.column) for measure in self.measures]
        ranked = [m for m in methods if m not in self.yardsticks]
        first = self.measures[0]
        ranks = mean_ranks({m: first.sign * tables[0][m] for m in ranked})
        items = list(dict.fromkeys(row["item"] for row in rows))
        found = []
        for method in methods:
            lead = first.sign * (tables[0][method] - tables[0].get(self.own, np.nan))
            ahead = [(float(lead[i]), items[i]) for i in np.flatnonzero(lead > CLEARLY)]
            notes = [row["note"] for row in rows if row["method"] == method and row["note"]]
            seconds = [row["seconds"] for row in rows if row["method"] == method]
            found.append(
                Line(
                    method,
                    tuple(
                        overall(table[method], measure)
                        for table, measure in zip(tables, self.measures, strict=True)
                    ),
                    ranks.get(method, math.nan),
                    sorted(ahead, key=lambda pair: -pair[0]),
                    float(np.median([s for s in seconds if s is not None] or [math.nan])),
                    listed_once(notes),
                )
            )
        return sorted(found, key=lambda line: _last_if_missing(first.sign * line.values[0]))

    def shown(self, results: Results, group: str = "", least: int = 1) -> list[int]:
        """Return the places of the measures that some methods have, at least so many."""
        values = np.array([line.values for line in self.lines(results, group)])
        return np.flatnonzero(np.isfinite(values).sum(axis=0) >= least).tolist()

    def better(self, results: Results, group: str = "", measure: int = 0) -> list[Line]:
        """Return the methods that are above ours by a measure, the best first."""
        lines = [line for line in self.lines(results, group) if line.method not in self.yardsticks]
        chosen = self.measures[measure]
        ours = self.value(results, chosen.column, group=group)
        found = [line for line in lines if chosen.sign * (line.values[measure] - ours) > 0]
        return sorted(found, key=lambda line: -chosen.sign * line.values[measure])

    def better_rank(self, results: Results, group: str = "") -> list[Line]:
        """Return the methods whose mean rank is before ours."""
        lines = self.lines(results, group)
        ours = next((line.rank for line in lines if line.method == self.own), math.nan)
        return sorted((line for line in lines if line.rank < ours), key=lambda line: line.rank)

    def quicker(self, results: Results, group: str = "") -> list[str]:
        """Return the methods that take less time than ours."""
        ours, lines = self.seconds(results, group=group), self.lines(results, group)
        others = [line for line in lines if line.method not in self.yardsticks]
        return [line.method for line in others if line.seconds < ours]

    def value(self, results: Results, column: str, method: str = "", group: str = "") -> float:
        """Return a method's number over all items, ours by default; NaN if an item has none."""
        measure = next(m for m in self.measures if m.column == column)
        rows = results.rows(SCORES, group=group)
        return overall(by_item(rows, [method or self.own], column)[method or self.own], measure)

    def seconds(self, results: Results, method: str = "", group: str = "") -> float:
        """Return the median time of a method."""
        rows = results.rows(SCORES, group=group, method=method or self.own)
        return float(np.median([row["seconds"] for row in rows if row["seconds"]] or [math.nan]))

    def place(self, results: Results, group: str = "") -> tuple[int, int]:
        """Return our place by the first measure, and among how many."""
        ranked = [
            line.method
            for line in self.lines(results, group)
            if line.method not in self.yardsticks and math.isfinite(line.values[0])
        ]
        return (ranked.index(self.own) + 1 if self.own in ranked else 0), len(ranked)

    def standing(self, results: Results, group: str) -> dict[str, Any]:
        """Return our value and place in a group, and who is first if not we."""
        place, among = self.place(results, group)
        value = self.value(results, self.measures[0].column, group=group)
        better = self.better(results, group)
        digits = self.measures[0].digits
        first = f"{better[0].method} ({better[0].values[0]:.{digits}f})" if better else ""
        return {"name": group, "value": value, "place": place, "among": among, "first": first}


def by_item(rows: Sequence[Row], methods: Sequence[str], column: str) -> dict[str, Array]:
    """Return, for each method, the mean over seeds for each item."""
    items = list(dict.fromkeys(row["item"] for row in rows))
    found: dict[tuple[str, Any], list[float]] = {}
    for row in rows:
        if row[column] is not None:
            found.setdefault((row["method"], row["item"]), []).append(row[column])
    return {
        method: np.array([np.mean(found.get((method, item), [math.nan])) for item in items])
        for method in methods
    }


def overall(values: Array, measure: Measure) -> float:
    """Return one number for all items; NaN if one of them has none."""
    return float(measure.over(values)) if np.isfinite(values).all() and len(values) else math.nan


def mean_ranks(values: dict[str, Array]) -> dict[str, float]:
    """Return the mean rank of each method over the items, 1 for the best; ties share their ranks.

    >>> mean_ranks({"a": np.array([3.0, 1.0]), "b": np.array([2.0, 1.0])})
    {'a': 1.25, 'b': 1.75}
    """
    from scipy.stats import rankdata

    there = {name: v for name, v in values.items() if np.isfinite(v).all() and len(v)}
    if not there:
        return {}
    ranks = rankdata(-np.array(list(there.values())), axis=0)
    return dict(zip(there, ranks.mean(axis=1).tolist(), strict=True))


def _last_if_missing(value: float) -> float:
    return math.inf if math.isnan(value) else -value


def listed_once(notes: Sequence[str]) -> str:
    """Return every note once."""
    return "; ".join(dict.fromkeys(notes))


# -- running ---------------------------------------------------------------------------------------


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """Return what a call returns, and the CPU seconds it took."""
    began = time.process_time()
    value = call()
    return value, time.process_time() - began


def best_f1(outlier: Array, score: Array) -> float:
    """Return the F1 of the outliers at the best threshold on a score that is higher for them."""
    order = np.argsort(-score, kind="stable")
    hits, flagged = np.cumsum(outlier[order]), np.arange(1, len(order) + 1)
    last = np.append(np.diff(score[order]) != 0, True)  # equal scores are flagged together
    return float(np.max((2 * hits / (flagged + outlier.sum()))[last]))


# -- the page --------------------------------------------------------------------------------------


class Page(NamedTuple):
    """What the macros need."""

    CLEARLY: float
    by_item: Callable[..., str]
    named: Callable[[str], str]


def facts(board: Board, results: Results) -> dict[str, Any]:
    """Return what the template of every board needs."""
    return {
        "board": board,
        "groups": board.groups(results),
        "targets": board.targets(board, results),
        "sources": [SOURCES[name] for name in board.sources],
        "seeds": len(results.values(SCORES, "seed")),
        "page": Page(CLEARLY, item_table, named),
    }


def item_table(board: Board, results: Results, group: str = "", measure: int = 0) -> str:
    """Return the table of items by methods; the best of a line is bold."""
    from studies._text import formatted, table

    chosen = board.measures[measure]
    methods = [line.method for line in board.lines(results, group)]
    rows = results.rows(SCORES, group=group)
    values = with_values(by_item(rows, methods, chosen.column))
    lines = []
    for i, item in enumerate(dict.fromkeys(row["item"] for row in rows)):
        numbers = {method: value[i] for method, value in values.items()}
        ranked = [chosen.sign * v for m, v in numbers.items() if m not in board.yardsticks]
        best = max((round(v, chosen.digits) for v in ranked if np.isfinite(v)), default=math.nan)
        cells = []
        for method, value in numbers.items():
            text = formatted(float(value), f".{chosen.digits}f")
            bold = method not in board.yardsticks
            bold &= round(chosen.sign * value, chosen.digits) == best
            cells.append(f"**{text}**" if bold else text)
        lines.append([item, *cells])
    return table([board.item, *map(named, values)], lines)


def with_values(values: dict[str, Array]) -> dict[str, Array]:
    """Return the methods that have a value somewhere."""
    return {method: value for method, value in values.items() if np.isfinite(value).any()}


def named(method: str) -> str:
    """Return a method as it stands on the page: calls as code.

    >>> named("DPCP()"), named("RX")
    ('`DPCP()`', 'RX')
    """
    return f"`{method}`" if method.endswith(")") else method


def picture(board: Board, results: Results) -> Any:
    """Draw the first measure: a dot for each item, a larger one for the mean; the best on top."""
    from perpend import plots

    panels = {}
    for group in board.groups(results):
        methods = [line.method for line in board.lines(results, group)]
        rows = results.rows(SCORES, group=group)
        panels[group] = with_values(by_item(rows, methods, board.measures[0].column))
    label = f"{board.measures[0].label}, one dot a {board.item}"
    width = 6.4 if len(panels) == 1 else 4.2
    return plots.dots(panels, xlabel=label, highlight=board.own, xlim=board.xlim, width=width)


# -- pictures that are stored line by line ---------------------------------------------------------


def hex_line(values: Array) -> str:
    """Write numbers from 0 to 1 as two hexadecimal digits each; missing ones as dots.

    >>> hex_line(np.array([0.0, 1.0, np.nan]))
    '00ff..'
    """
    return "".join(
        f"{round(255 * min(max(v, 0.0), 1.0)):02x}" if np.isfinite(v) else ".." for v in values
    )


def from_hex(line: str) -> Array:
    """Read what `hex_line` wrote.

    >>> from_hex("00ff..")
    array([ 0.,  1., nan])
    """
    pairs = [line[i : i + 2] for i in range(0, len(line), 2)]
    return np.array([np.nan if pair == ".." else int(pair, 16) / 255 for pair in pairs])


def stored_images(images: dict[str, Array]) -> list[Row]:
    """Return pictures as rows of a table."""
    return [
        {"panel": name, "line": i, "pixels": hex_line(line)}
        for name, image in images.items()
        for i, line in enumerate(image)
    ]


def image(results: Results, name: str, panel: str) -> Array:
    """Return a picture that is stored line by line."""
    return np.array([from_hex(line) for line in results.column(name, "pixels", panel=panel)])
