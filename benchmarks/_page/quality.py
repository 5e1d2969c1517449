"""Targets of the benchmarks that count estimates and have no section of their own."""

from _text import percent

from _page.section import Result, Target


def recovery_targets(result: Result) -> list[Target]:
    """Return a target for each setting, which the benchmark has checked itself."""
    made = []
    for setting, verdict in result["targets"].items():
        kind = "exact" if "exact" in verdict else "right"
        measured = f"{verdict[kind]} of {verdict['of']}, {verdict['sure_and_wrong']} sure and wrong"
        required = f"{percent(verdict['required'])} {kind}, none sure and wrong"
        made.append(Target(f"recovery, {setting}", required, measured, bool(verdict["met"])))
    return made


def grid_search_targets(result: Result) -> list[Target]:
    """Return the share of the draws in which the true codimension is picked."""
    share, least = result["right"] / result["draws"], result["target"]
    measured = f"{result['right']} of {result['draws']} draws"
    what = "grid search, true codimension"
    return [Target(what, f"at least {percent(least)}", measured, share >= least)]
