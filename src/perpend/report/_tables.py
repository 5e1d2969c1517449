"""The strongest outliers as a table."""

from collections.abc import Iterable

from perpend.report._facts import Facts
from perpend.report._html import Html, join, section, tag
from perpend.report._outliers import Blame, OutlierRow
from perpend.report._text import column_name, count, name, number, percent


def outliers(facts: Facts) -> Html | None:
    """The strongest outliers and the columns that make each of them one."""
    table = facts["outliers"]
    if table is None or not table["rows"]:
        return None
    blamed = any(row["blame"] for row in table["rows"])
    image = table["rows"][0]["pixel"] is not None
    heads = ["Pixel (line, sample)" if image else "Row", "Distance", "Probability"]
    head = [tag("th", label, scope="col", data_kind="number") for label in heads]
    if blamed:
        head.append(tag("th", "Columns that make it one", scope="col"))
    shown = len(table["rows"])
    which = f"all {shown}" if shown == table["total"] else f"{shown} of {count(table['total'])}"
    counted = "Lines and samples count" if image else "Rows count"
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
        ("Distance", number(row["distance"]), row["distance"]),
        ("Probability", "unknown" if p is None else percent(p), -1 if p is None else p),
    ]
    cells = [tag("th", first, scope="row", data_sort=row["row"], class_="narrow")]
    cells += [
        tag("td", shown, data_sort=value, data_label=label, class_="narrow")
        for label, shown, value in numbers
    ]
    if blamed:
        columns = _blame(row["blame"], facts["data"]["columns"])
        cells.append(tag("td", columns, data_label="Columns"))
    return tag("tr", cells)


def _blame_note(facts: Facts, *, blamed: bool) -> str:
    if blamed:
        return (
            "A column is named with the share of the squared distance that would vanish if it "
            "alone took the value after the arrow. Several large shares: a change of any of these "
            "would do. None: no single column is to blame."
        )
    if facts["answer"]["codimension"] == 1:
        return (
            "With a single normal every column that it uses could make up for the whole distance, "
            "so no column can be blamed: at least two normals are needed to tell them apart."
        )
    return "No single column is to blame for any of these rows."


def _blame(blames: Iterable[Blame], names: list[str]) -> Html:
    parts = []
    for blame in blames:
        column = column_name(names, blame["column"])
        change = f"{number(blame['value'])} → {number(blame['fits'])}"
        parts.append(
            tag("span", name(column, 28), f" {blame['share']:.0%}: {change}", class_="blame")
        )
    return join(parts) if parts else tag("span", "no single column", class_="muted")
