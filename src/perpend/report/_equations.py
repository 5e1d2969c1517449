"""The subspace as equations in the data's own names and units."""

import math

from perpend.report._facts import EQUATIONS, Facts
from perpend.report._html import Html, join, section, tag
from perpend.report._nouns import nouns
from perpend.report._solved import TERMS, Solved
from perpend.report._text import column_name, count, digits_needed, name, number, plural, short

FIRST = 3  # equations are shown where there are many


def equation(facts: Facts) -> Html | None:
    """The subspace as equations in the data's own names and units."""
    answer = facts["answer"]
    if answer["codimension"] == 0:
        return None
    solved = answer.get("solved")
    parts = _as_normals(facts) if solved is None else _as_solved(solved, facts)
    return section("equation", "The equation", parts, _mean(facts))


def _as_solved(solved: list[Solved], facts: Facts) -> list[Html]:
    """Some columns as combinations of the others."""
    names, say = facts["data"]["columns"], nouns(facts)
    text = (
        f"A {say.row} is on the subspace where all {len(solved)} of these hold at once, in the "
        f"data's own units. They are solved for {say.columns} that follow from the others, "
        "and coefficients are as round as the noise allows."
    )
    if any(one["left_out"] for one in solved):
        text += (
            f" Terms are left out that together change a {say.column} by less than its noise, or "
            "by less than a thousandth of its spread."
        )
    lines = [tag("p", _one_solved(one, names), class_="equation") for one in solved]
    return [tag("p", text), *lines]


def _one_solved(one: Solved, names: list[str]) -> Html:
    """Write column = terms + constant, with the digits that the inliers' values call for."""
    parts = [
        _term(
            term["value"],
            _fewest_digits(term["value"], term["size"], one["error"]),
            column_name(names, term["column"]),
            first=k == 0,
        )
        for k, term in enumerate(one["terms"])
    ]
    if one["more"]:
        parts.append(tag("span", f" + {plural(one['more'], 'smaller term')}", class_="term"))
    constant = one["constant"]
    if constant or not parts:
        shown = _fewest_digits(constant, 1.0, one["error"])
        parts.append(_term(constant, shown, first=not parts))
    column = tag("i", name(column_name(names, one["column"]), 28))
    return join([tag("span", column, " = ", class_="term"), *parts])


def _fewest_digits(value: float, factor: float, error: float) -> int:
    """Return the digits of the roundest value that, times a factor, is within an error.

    >>> _fewest_digits(0.190005, 100.0, 0.001), _fewest_digits(0.190005, 1e3, 0.001)
    (2, 6)
    """
    most = digits_needed(value, factor, error)
    near = (n for n in range(1, most) if abs(float(f"{value:.{n}g}") - value) * factor <= error)
    return next(near, most)


def _term(value: float, shown: int, column: str = "", *, first: bool) -> Html:
    """Write a signed coefficient before its column, or alone; 1 goes without saying."""
    joint = ("−" if value < 0 else "") if first else (" − " if value < 0 else " + ")
    factor = number(abs(value), shown)
    if not column:
        return tag("span", joint, factor, class_="term")
    if column[:1].isdigit():  # "0.5 400 nm" would read as one number
        factor += " · "
    else:
        factor = "" if factor == "1" else f"{factor} "
    return tag("span", joint, factor, tag("i", name(column, 28)), class_="term")


def _as_normals(facts: Facts) -> list[Html]:
    """The normals as they are, or the first of many."""
    answer, names = facts["answer"], facts["data"]["columns"]
    c = answer["codimension"]
    shown = c if c <= min(EQUATIONS, len(answer["normals"])) else FIRST
    place, error = answer["location"], _allowed_error(facts)
    lines = [
        tag("p", _one_normal(normal, b, names, at=place, error=error), class_="equation")
        for normal, b in zip(answer["normals"][:shown], answer["intercept"], strict=False)
    ]
    row = nouns(facts).row
    text = f"A {row} is on the subspace where this holds, in the data's own units:"
    if c > 1:
        text = (
            f"A {row} is on the subspace where all {c} of these hold at once, in the data's own "
            "units. They are one choice of many: any combination of them holds, too."
        )
    if shown == c:
        return [tag("p", text), *lines]
    rest = tag(
        "p",
        f"These are the first {shown} of {count(c)}. All of them: ",
        tag("code", "model.normals_ @ x = model.intercept_"),
        " after ",
        tag("code", 'model = perpend.load("model.npz")'),
        ".",
    )
    return [tag("p", text.replace(f"all {c} of these", f"all {c} equations")), *lines, rest]


def _mean(facts: Facts) -> Html | None:
    """A point on an affine subspace."""
    answer, error = facts["answer"], _allowed_error(facts)
    if not answer["affine"]:
        return None
    pairs = list(zip(facts["data"]["columns"], answer["location"], strict=False))
    at = ", ".join(
        f"{short(n, 20)} = {number(v, max(5, digits_needed(v, 1.0, error)))}"
        for n, v in pairs[:TERMS]
    )
    more = " …" if len(answer["location"]) > TERMS else ""
    return tag("p", "The inliers' mean is on it: ", at + more, ".")


def _allowed_error(facts: Facts) -> float:
    """Return how far off a written equation may be where the rows are; 0 means any.

    Far from the origin a coefficient is multiplied by a large number, and its digits matter.
    """
    answer, off = facts["answer"], facts["data"]["off_origin"]
    if not answer["affine"]:
        return 0.0
    radius = math.hypot(*answer["location"]) / off if off else 0.0
    return max(answer["threshold"] / 10, radius / 10_000) / (len(answer["location"]) + 1)


def _one_normal(
    normal: list[float], intercept: float, names: list[str], *, at: list[float], error: float
) -> Html:
    """Write normal @ x = intercept with its largest coefficient positive; it holds near `at`."""
    largest = max(normal, key=abs)
    sign = 1.0 if largest >= 0 else -1.0
    values = {j: sign * v for j, v in enumerate(normal) if abs(v) > 1e-12 * abs(largest)}
    kept = sorted(sorted(values, key=lambda j: -abs(values[j]))[:TERMS])
    parts: list[object] = [
        _term(
            values[j],
            digits_needed(values[j], at[j], error),
            column_name(names, j),
            first=k == 0,
        )
        for k, j in enumerate(kept)
    ]
    if len(values) > len(kept):
        parts.append(f" + {plural(len(values) - len(kept), 'smaller term')}")
    right = number(sign * intercept, max(6, digits_needed(intercept, 1.0, error)))
    return join([*parts, " = ", right])
