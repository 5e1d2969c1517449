"""The benchmarks of right answers: a line each, and recovery's bars."""

from collections.abc import Callable

from _page.section import Bar, Result
from perpend.experiments._text import percent


def recovery(result: Result) -> str:
    """How many settings hold their bar."""
    held = sum(bar.held for bar in recovery_bars(result))
    return (
        "how often the subspace is recovered, over many seeds: "
        f"{held} of {len(result['bars'])} settings hold their bar"
    )


def recovery_bars(result: Result) -> list[Bar]:
    """Return the bars that the benchmark has judged itself."""
    made = []
    for setting, verdict in result["bars"].items():
        kind = "exact" if "exact" in verdict else "right"
        measured = f"{verdict[kind]} of {verdict['of']}, {verdict['sure_and_wrong']} sure and wrong"
        asked = f"{percent(verdict['asked'])} {kind}, none sure and wrong"
        made.append(Bar(f"recovery, {setting}", asked, measured, bool(verdict["holds"])))
    return made


def no_structure(result: Result) -> str:
    """How sure a fit is where there is nothing to find."""
    most = max(row["largest_confidence"] for row in result["results"])
    return (
        f"what a fit gains on rows without structure: over {len(result['results'])} shapes, no "
        f"answer has a confidence above {most:.2f}"
    )


LINES: dict[str, Callable[[Result], str]] = {
    "recovery": recovery,
    "no_structure": no_structure,
}
