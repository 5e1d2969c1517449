"""Recovery's targets, which the benchmark has checked itself."""

from _text import percent

from _page.section import Result, Target


def recovery_targets(result: Result) -> list[Target]:
    """Return a target for each setting."""
    made = []
    for setting, verdict in result["targets"].items():
        kind = "exact" if "exact" in verdict else "right"
        measured = f"{verdict[kind]} of {verdict['of']}, {verdict['sure_and_wrong']} sure and wrong"
        required = f"{percent(verdict['required'])} {kind}, none sure and wrong"
        made.append(Target(f"recovery, {setting}", required, measured, bool(verdict["met"])))
    return made
