"""The strongest outliers as a table, and the subspace as equations."""

import math
from collections.abc import Iterable

from perpend.report._facts import EQUATIONS, Facts
from perpend.report._html import Html, join, section, tag
from perpend.report._outliers import Blame, OutlierRow
from perpend.report._text import count, name, number, percent, plural, short

TERMS = 12  # of an equation
FIRST = 3  # equations are shown where there are many
DIGITS = (4, 12)  # of a coefficient, at least and at most


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
        column = _column(names, blame["column"])
        change = f"{number(blame['value'])} → {number(blame['fits'])}"
        parts.append(
            tag("span", name(column, 28), f" {blame['share']:.0%}: {change}", class_="blame")
        )
    return join(parts) if parts else tag("span", "no single column", class_="muted")


def _column(names: list[str], j: int) -> str:
    """Return the name of a column; only so many are kept."""
    return names[j] if j < len(names) else f"column {j + 1}"


def equation(facts: Facts) -> Html | None:
    """The subspace as equations in the data's own names and units."""
    answer, names = facts["answer"], facts["data"]["columns"]
    c = answer["codimension"]
    shown = c if c <= EQUATIONS else FIRST
    if c == 0:
        return None
    place, error = answer["location"], _allowed_error(facts)
    lines = [
        tag("p", _one_equation(normal, b, names, at=place, error=error), class_="equation")
        for normal, b in zip(answer["normals"][:shown], answer["intercept"], strict=False)
    ]
    text = "A row is on the subspace where this holds, in the data's own units:"
    if c > 1:
        text = (
            f"A row is on the subspace where all {c} of these hold at once, in the data's own "
            "units. They are one choice of many: any combination of them holds, too."
        )
    rest = None
    if shown < c:
        text = text.replace(f"all {c} of these", f"all {c} equations")
        rest = tag(
            "p",
            f"These are the first {shown} of {count(c)}. All of them: ",
            tag("code", "model.normals_ @ x = model.intercept_"),
            " after ",
            tag("code", 'model = perpend.load("model.npz")'),
            ".",
        )
    affine = None
    if answer["affine"]:
        at = ", ".join(
            f"{short(n, 20)} = {number(v, max(5, _digits(v, 1.0, error)))}"
            for n, v in list(zip(names, place, strict=False))[:TERMS]
        )
        more = " …" if len(answer["location"]) > TERMS else ""
        affine = tag("p", "The inliers' mean is on it: ", at + more, ".")
    return section("equation", "The equation", tag("p", text), lines, affine, rest)


def _allowed_error(facts: Facts) -> float:
    """Return how far off a written equation may be where the rows are; 0 means any.

    Far from the origin a coefficient is multiplied by a large number, and its digits matter.
    """
    answer, off = facts["answer"], facts["data"]["off_origin"]
    if not answer["affine"]:
        return 0.0
    radius = math.hypot(*answer["location"]) / off if off else 0.0
    return max(answer["threshold"] / 10, radius / 10_000) / (len(answer["location"]) + 1)


def _digits(value: float, factor: float, error: float) -> int:
    """Return the digits of a value that keep it, times a factor, within an error.

    >>> _digits(0.01000319, 5e6, 0.0025), _digits(0.01, 0.0, 0.1), _digits(42288.2, 1.0, 0.001)
    (8, 4, 8)
    """
    least, most = DIGITS
    if error <= 0 or value == 0 or factor == 0:
        return least
    decimals = math.ceil(math.log10(abs(factor) / (2 * error)))  # 10^-decimals / 2 is its rounding
    return min(max(decimals + math.floor(math.log10(abs(value))) + 1, least), most)


def _one_equation(
    normal: list[float], intercept: float, names: list[str], *, at: list[float], error: float
) -> Html:
    """Write normal @ x = intercept with its largest coefficient positive; it holds near `at`."""
    largest = max(normal, key=abs)
    sign = 1.0 if largest >= 0 else -1.0
    values = {j: sign * v for j, v in enumerate(normal) if abs(v) > 1e-12 * abs(largest)}
    kept = sorted(sorted(values, key=lambda j: -abs(values[j]))[:TERMS])
    parts: list[object] = []
    for j in kept:
        value = values[j]
        joint = ("−" if value < 0 else "") if not parts else (" − " if value < 0 else " + ")
        column = tag("i", name(_column(names, j), 28))
        shown = number(abs(value), _digits(value, at[j], error))
        parts.append(tag("span", joint, shown, " ", column, class_="term"))
    if len(values) > len(kept):
        parts.append(f" + {plural(len(values) - len(kept), 'smaller term')}")
    return join([*parts, " = ", number(sign * intercept, max(6, _digits(intercept, 1.0, error)))])
