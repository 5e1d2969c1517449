"""Recovery's bars, which the benchmark has judged itself."""

from _text import percent

from _page.section import Bar, Result


def recovery_bars(result: Result) -> list[Bar]:
    """Return a bar for each setting."""
    made = []
    for setting, verdict in result["bars"].items():
        kind = "exact" if "exact" in verdict else "right"
        measured = f"{verdict[kind]} of {verdict['of']}, {verdict['sure_and_wrong']} sure and wrong"
        asked = f"{percent(verdict['asked'])} {kind}, none sure and wrong"
        made.append(Bar(f"recovery, {setting}", asked, measured, bool(verdict["holds"])))
    return made
