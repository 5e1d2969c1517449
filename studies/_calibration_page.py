"""The calibration's picture, and the numbers on its page, from the stored rows alone."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from perpend.experiments._experiment import Results, Row
from perpend.experiments._trials import percent
from studies._calibration_suite import FITS, HELD_OUT, SIZE, SUITES, TUNING

SURE_RIGHT, RIGHT_SURE = 0.99, 0.80  # the targets
KINDS = {
    "sphere": "on the sphere",
    "heavy": "heavy-tailed",
    "cluster": "in one tight cluster",
    "plane": "of rank 2",
}
NUMBER = re.compile(r"(?<![\w.])\d[\d.]*(?:e[+-]?\d+)?")


def draw(results: Results) -> dict[str, Any]:
    """Draw the reliability diagram, a panel for each suite."""
    from perpend import plots
    from perpend.structure import SURE

    panels = {
        f"{suite} suite": tuple(
            results.column("estimates", name, suite=suite) for name in ("confidence", "right")
        )
        for suite in results.values("estimates", "suite")
    }
    return {"reliability": plots.reliability(panels, sure=SURE)}


def numbers(results: Results) -> dict[str, Any]:
    """Return counts by suite and kind, and every estimate that was sure and wrong."""
    from perpend.structure import SURE

    estimates = {suite: results.rows("estimates", suite=suite) for suite in SUITES}
    estimates = {suite: rows for suite, rows in estimates.items() if rows}
    everything = [row for rows in estimates.values() for row in rows]
    return {
        "SURE": SURE,
        "FITS": FITS,
        "SIZE": SIZE,
        "TUNING": TUNING,
        "HELD_OUT": HELD_OUT,
        "targets": (SURE_RIGHT, RIGHT_SURE),
        "met": met,
        "counts": counts,
        "share": share,
        "estimates": estimates,
        "groups": {suite: _groups(rows) for suite, rows in estimates.items()},
        "wrong": [row for row in everything if row["sure"] and not row["right"]],
        "shy": [row for row in everything if row["right"] and not row["sure"]],
        "doubts": _doubts_of_right(everything),
        "unsure": [row for row in everything if not row["sure"]],
        "silent": sum(not row["warned"] for row in everything if not row["sure"]),
        "loud": sum(row["warned"] for row in everything if row["sure"]),
    }


# -- counting ----------------------------------------------------------------------------------


def met(rows: list[Row]) -> tuple[bool, bool]:
    """Whether the two targets are met: sure estimates right, right estimates sure."""
    right, sure, both = counts(rows)
    return sure == 0 or both / sure >= SURE_RIGHT, right > 0 and both / right >= RIGHT_SURE


def counts(rows: Iterable[Row]) -> tuple[int, int, int]:
    """Return the number of estimates that are right, that are sure, and that are both."""
    pairs = Counter((row["right"], row["sure"]) for row in rows)
    both = pairs[True, True]
    return both + pairs[True, False], both + pairs[False, True], both


def share(hits: int, n: int) -> str:
    """Return a count, its share and the exact interval.

    >>> share(9, 10)
    '9 of 10, 90 % (55.5 to 99.7 %)'
    """
    from scipy import stats

    if n == 0:
        return "none of none"
    ends = stats.binomtest(hits, n).proportion_ci(method="exact")
    low, high = (percent(round(end, 3)) for end in ends)
    return f"{hits} of {n}, {percent(hits / n)} ({low.removesuffix(' %')} to {high})"


def _groups(rows: list[Row]) -> dict[str, list[Row]]:
    """Return the estimates by kind of outliers, noise and stretch."""
    suite = SUITES[TUNING]
    wanted: list[tuple[str, str, Any]] = [
        *((f"outliers {words}", "kind", kind) for kind, words in KINDS.items()),
        *((f"noise {value:g}", "noise", value) for value in suite.noise),
        *((f"stretch {value:g}", "stretch", value) for value in suite.stretch),
    ]
    return {words: [r for r in rows if r[name] == value] for words, name, value in wanted}


def _doubts_of_right(rows: list[Row]) -> list[tuple[str, int, int]]:
    """Return what right estimates warn of: how many, and how many of nothing else."""
    alone: Counter[str] = Counter()
    among: Counter[str] = Counter()
    for row in rows:
        if row["right"] and not row["sure"]:
            sentences = set(doubts(row["doubts"]))
            among.update(sentences)
            alone.update(sentences if len(sentences) == 1 else [])
    return [(sentence, n, alone[sentence]) for sentence, n in among.most_common()]


def doubts(text: str) -> list[str]:
    """Return the sentences of a warning without their numbers.

    >>> doubts("only 7 rows (add rows); a rise of 1.5e-3, or 20% (noise)")
    ['only … rows (add rows)', 'a rise of …, or …% (noise)']
    """
    sentences = re.split(r"(?<=\)); ", text)
    return [NUMBER.sub("…", sentence) for sentence in sentences if sentence]
