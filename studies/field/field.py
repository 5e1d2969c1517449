"""The field's standard experiments: every method in every cell, as heat maps and a ranking.

Methods that need the dimension are given the true one; `DPCP()` and some others choose it.
"""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Experiment, Results, Row, Settings, Tables
from perpend.experiments._trials import RECOVERED, percent
from studies._cells import SIGNIFICANT
from studies.field._methods import (
    AS_GOOD,
    AT_MOST,
    ATOMS,
    COSTLY,
    GIVEN,
    ONCE,
    OURS,
    entries,
    measured,
)
from studies.field._problems import GRIDS, Lines

SEED = 210_000  # of the first trial
COLUMNS = 5  # panels side by side
PANEL = 2.2, 1.9  # inches: larger ones make the words too small, as the page shrinks the picture


def cases(settings: Settings) -> list[Case]:
    """Return one case for each trial in each cell; all methods see the same data."""
    found = []
    for trial in range(settings.seeds or (1 if settings.quick else 3)):
        for name, grid in GRIDS.items():
            xs, ys = grid.axes(quick=settings.quick)
            sizes = grid.sizes_of(quick=settings.quick)
            found += [
                {"grid": name, "x": x, "y": y, "trial": trial, **sizes} for y in ys for x in xs
            ]
    return found


def run(case: Case) -> Tables:
    """Fit all methods to the data of one trial."""
    grid = GRIDS[case["grid"]]
    seed = SEED + case["trial"]
    place = [list(GRIDS).index(case["grid"]), grid.xs.index(case["x"]), grid.ys.index(case["y"])]
    problem = grid.draw(case["x"], case["y"], case, np.random.default_rng([seed, *place]))
    cell = {name: case[name] for name in ("grid", "x", "y", "trial")}
    rows = measured(problem, case["trial"], seed)
    return {"trials": [{**cell, "n": len(problem.X), **row} for row in rows]}


def cost(case: Case) -> float:
    """Return the relative time: about the number of rows, and of normals that are sought."""
    grid, x, y = case["grid"], case["x"], case["y"]
    if grid in ("noise", "relative", "cluster"):
        return float(case["N"] / (1 - y) * case["D"])
    if grid == "dictionary":
        return float(10 * case["D"] ** (1 + y))
    rows = {"haystack": lambda: x * case["d"] + y * case["D"], "few": lambda: x * y + case["M"],
            "deficient": lambda: case["n"]}[grid]()  # fmt: skip
    return float((400 + rows) * case["D"])


# -- looking at the results --------------------------------------------------------------------


def share(rows: list[Row]) -> float:
    """Return the share of the fits that recovered; NaN if there was none."""
    done = [row["recovered"] for row in rows if row["recovered"] is not None]
    return float(np.mean(done)) if done else np.nan


def _grids(results: Results) -> list[str]:
    return [name for name in GRIDS if name in results.values("trials", "grid")]


def _axes(results: Results, grid: str) -> tuple[list[float], list[float]]:
    rows = results.rows("trials", grid=grid)
    return sorted({row["x"] for row in rows}), sorted({row["y"] for row in rows})


def _maps(results: Results, grid: str) -> dict[str, Array]:
    """Return the share of recovered trials (ys, xs) of each method, the best method first."""
    xs, ys = _axes(results, grid)
    cells: dict[str, dict[tuple[Any, Any], list[Row]]] = {}
    for (name, x, y), rows in results.groups("trials", "method", "x", "y", grid=grid).items():
        cells.setdefault(name, {})[x, y] = rows
    maps = {
        name: np.array([[share(found.get((x, y), [])) for x in xs] for y in ys])
        for name, found in cells.items()
    }
    return dict(sorted(maps.items(), key=lambda pair: -_mean(pair[1])))


def _mean(map_: Array) -> float:
    """Return the mean of the cells that were computed; 0 without any."""
    return float(np.nanmean(map_)) if np.any(np.isfinite(map_)) else 0.0


def _lines(results: Results, name: str) -> tuple[Lines, list[str]]:
    """Return the transitions as far as they are on the map, and those that are not."""
    from perpend.plots._maps import cell_edges

    (left, *_, right), (low, *_, high) = (cell_edges(axis) for axis in _axes(results, name))
    inside, outside = {}, []
    sizes = GRIDS[name].sizes_of(quick=results.quick)
    for words, (x, y) in GRIDS[name].lines(np.linspace(left, right, 101), sizes).items():
        on = (low <= y) & (y <= high)
        if np.any(on):
            inside[words] = (x, np.where(on, y, np.nan))
        else:
            outside.append(f"{words}, at {y.mean():.2f}")
    return inside, outside


def draw(results: Results) -> dict[str, Any]:
    """Draw the maps of every experiment."""
    from perpend import plots

    return {
        name: plots.heatmaps(
            _maps(results, name), *_axes(results, name), columns=COLUMNS, panel=PANEL,
            xlabel=GRIDS[name].x, ylabel=GRIDS[name].y, label="share of trials recovered",
            lines=_lines(results, name)[0],
        )
        for name in _grids(results)
    }  # fmt: skip


def _ahead(results: Results, grid: str) -> list[tuple[str, int, int]]:
    """Return who recovers significantly more trials than `DPCP()`: name, trials won, trials lost.

    By a one-sided sign test over the trials that only one of the two recovers.
    """
    from scipy import stats

    def by_trial(name: str) -> dict[tuple[Any, ...], Any]:
        rows = results.rows("trials", grid=grid, method=name)
        return {(row["x"], row["y"], row["trial"]): row["recovered"] for row in rows}

    own, found = by_trial(OURS), []
    for name in _maps(results, grid):
        other = by_trial(name)
        pairs = [(other[key], own[key]) for key in own if other[key] is not None]
        won, lost = (sum(a and not b for a, b in p) for p in (pairs, [q[::-1] for q in pairs]))
        if won and stats.binomtest(won, won + lost, alternative="greater").pvalue < SIGNIFICANT:
            found.append((name, won, lost))
    return found


def _behind(results: Results, grid: str) -> list[tuple[float, float, float, list[str]]]:
    """Return cells (x, y) where others recover all trials and `DPCP()` at most half, and these."""
    maps = _maps(results, grid)
    xs, ys = _axes(results, grid)
    return [
        (x, y, own, full)
        for j, y in enumerate(ys)
        for i, x in enumerate(xs)
        if (own := maps[OURS][j, i]) <= 0.5
        and (full := [name for name, map_ in maps.items() if map_[j, i] == 1])
    ]


def _best(shares: dict[str, float]) -> list[str]:
    """Return the five best methods with their shares, and `DPCP()` if it is not among them."""
    some = list(shares)[:5]
    some += [] if OURS in some else [OURS]
    return [f"`{name}` {percent(shares[name])}" for name in some]


def numbers(results: Results) -> dict[str, Any]:
    """Return the ranking, and for each experiment where others are ahead of `DPCP()`."""
    from perpend.structure import SURE

    known, names = entries(), _grids(results)
    given = {name: known[name].given for name in results.values("trials", "method")}
    shares = {name: {m: _mean(map_) for m, map_ in _maps(results, name).items()} for name in names}
    methods = [name for name, what in given.items() if what != ATOMS]
    overall = {m: float(np.mean([shares[name][m] for name in names])) for m in methods}
    ranking = sorted(methods, key=lambda m: -overall[m])
    alone = [m for m in ranking if given[m] == given[OURS]]
    ours = results.rows("trials", method=OURS)
    fits = results.rows("trials")
    wrong = {name: [row for row in ours if row["grid"] == name and not row["recovered"]
                    and (row["confidence"] or 0) >= SURE] for name in GRIDS}  # fmt: skip
    sizes = {name: GRIDS[name].sizes_of(quick=results.quick) for name in GRIDS}
    # Of the outliers' own subspace: its dimension is x, or that of a line through the cluster.
    own = [
        row
        for row in (*wrong["deficient"], *wrong["cluster"])
        if sizes[row["grid"]]["D"] - row["codimension"]
        == (row["x"] if row["grid"] == "deficient" else 1)
    ]
    return {
        "grids": {name: GRIDS[name] for name in names},
        "axes": {name: _axes(results, name) for name in names},
        "sizes": sizes,
        "shares": shares,
        "best": {name: _best(found) for name, found in shares.items()},
        "names": lambda some: [f"`{name}`" for name in some],
        "ranking": ranking,
        "overall": overall,
        "alone": alone,
        "given": given,
        "ahead": {name: _ahead(results, name) for name in names},
        "behind": {name: _behind(results, name) for name in names},
        "failed": {m: sum(r["note"].startswith("failed") for r in fits if r["method"] == m)
                   for m in given},
        "skipped": [r for r in fits if r["note"] == COSTLY],
        "wrong": {name: len(rows) for name, rows in wrong.items()},
        "own": len(own),
        "outside": {name: _lines(results, name)[1] for name in names},
        "GIVEN": GIVEN,
        "n_ours": len(ours),
        "OURS": OURS, "limit": RECOVERED, "as_good": AS_GOOD, "at_most": AT_MOST,
        "once": ONCE, "significant": SIGNIFICANT, "ATOMS": ATOMS,
    }  # fmt: skip


EXPERIMENT = Experiment(
    name="field",
    title="The field's experiments",
    about="every method on seven standard experiments: heat maps and a ranking",
    cases=cases,
    run=run,
    draw=draw,
    cost=cost,
)
