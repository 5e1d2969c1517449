"""The strongest outliers as a table."""

from collections.abc import Iterable

from perpend.report._facts import Facts
from perpend.report._html import Html, join, section, tag
from perpend.report._nouns import nouns
from perpend.report._outliers import Blame, OutlierRow
from perpend.report._text import (
    COEFFICIENT,
    column_name,
    count,
    digits_needed,
    name,
    number,
    percent,
    short,
)


def outliers(facts: Facts) -> Html | None:
    """The strongest outliers and the columns that make each of them one."""
    table = facts["outliers"]
    if table is None or not table["rows"]:
        return None
    blamed = any(row["blame"] for row in table["rows"])
    image = table["rows"][0]["pixel"] is not None
    say = nouns(facts)
    axes = _axes(table["rows"][0], facts)
    heads = [
        "Pixel (line, sample)" if image else say.row.capitalize(),
        *axes,
        "Distance",
        "Probability",
    ]
    head = [tag("th", label, scope="col", data_kind="number") for label in heads]
    if blamed:
        single = facts["answer"]["codimension"] == 1
        said = f"{say.columns.capitalize()} that {'may ' if single else ''}make it one"
        head.append(tag("th", said, scope="col"))
    shown = len(table["rows"])
    which = f"all {shown}" if shown == table["total"] else f"{shown} of {count(table['total'])}"
    counted = "Lines and samples count" if image else f"{say.rows.capitalize()} count"
    content = [
        tag("caption", f"The strongest outliers ({which}). {counted} from 0."),
        tag("thead", tag("tr", head)),
        tag("tbody", [_row(row, facts, blamed=blamed) for row in table["rows"]]),
    ]
    box = tag(
        "div",
        tag("table", content, class_="stack sortable"),
        class_="scroll",
        tabindex=0,
        role="region",
        aria_label="The strongest outliers, scrollable",
    )
    note = tag("p", _blame_note(facts, blamed=blamed))
    return section("outliers", "The strongest outliers", note, box)


def _row(row: OutlierRow, facts: Facts, *, blamed: bool) -> Html:
    pixel, p = row["pixel"], row["probability"]
    first = f"{pixel[0]}, {pixel[1]}" if pixel else str(row["row"])
    numbers = [
        (axis, number(v, digits_needed(v, 1.0, _resolution(facts))), v)
        for axis, v in zip(_axes(row, facts), row.get("place") or [], strict=False)
    ]
    numbers += [
        ("Distance", number(row["distance"]), row["distance"]),
        ("Probability", "unknown" if p is None else percent(p), -1 if p is None else p),
    ]
    cells = [tag("th", first, scope="row", data_sort=row["row"], class_="narrow")]
    cells += [
        tag("td", shown, data_sort=value, data_label=label, class_="narrow")
        for label, shown, value in numbers
    ]
    if blamed:
        columns = nouns(facts).columns
        cells.append(tag("td", _blame(row["blame"], facts), data_label=columns.capitalize()))
    return tag("tr", cells)


def _axes(row: OutlierRow, facts: Facts) -> list[str]:
    """Return the names of the coordinates, where points have a place."""
    place = row.get("place") or []
    return [short(column_name(facts["data"]["columns"], j), 20) for j in range(len(place))]


def _resolution(facts: Facts) -> float:
    """Return how far a coordinate may be off in the table."""
    cloud = facts["pictures"]["cloud"]
    return cloud["size"] / 2000 if cloud else 0.0


def _blame_note(facts: Facts, *, blamed: bool) -> str:
    row, column = nouns(facts)
    if blamed and facts["answer"]["codimension"] == 1:
        return (
            f"With a single equation any of its {column}s could make up for the whole distance, so "
            f"which one is wrong is a guess. A {column} is named if it alone, with the value after "
            f"the arrow, would put the {row} on the subspace, and if inliers have such values. "
            "First comes the one that would have to move least, in units of its own spread "
            "(standard deviation) among the inliers."
        )
    if blamed:
        return (
            f"A {column} is named with the share of the squared distance that would vanish if it "
            "alone took the value after the arrow. Several large shares: a change of any of these "
            f"would do. None: no single {column} is to blame."
        )
    if facts["answer"]["codimension"] == 1:
        return (
            f"No single {column} is to blame for any of these {row}s: whichever were changed to "
            f"bring a {row} back to the subspace, it would get a value like none of the inliers'."
        )
    return f"No single {column} is to blame for any of these {row}s."


def _blame(blames: Iterable[Blame], facts: Facts) -> Html:
    parts = []
    for blame in blames:
        column = column_name(facts["data"]["columns"], blame["column"])
        before, after = blame["value"], blame["fits"]
        seen = abs(before - after) / 20  # far from the origin both look alike in a few digits
        change = " → ".join(number(v, _digits(v, seen)) for v in (before, after))
        how = f" {blame['share']:.0%}: "
        if "moves" in blame:
            moves = blame["moves"]
            how = ": " if moves is None else f" {number(moves, 2)} spreads: "
        parts.append(tag("span", name(column, 28), how, change, class_="blame"))
    return join(parts) if parts else tag("span", f"no single {nouns(facts).column}", class_="muted")


def _digits(value: float, error: float) -> int:
    """Three digits, or as many more as the error asks for."""
    needed = digits_needed(value, 1.0, error)
    return needed if needed > COEFFICIENT[0] else 3
