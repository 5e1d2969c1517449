"""The equations of a subspace as text, in the data's own names and units."""

import math
from typing import NamedTuple

from perpend.plots._words import number, plural
from perpend.relations.solved import fewest_digits
from perpend.report._solved import MOST_EQUATIONS, TERMS
from perpend.report._words import Facts, column_name, digits_needed, short

SHOWN_FIRST = 3  # equations are shown if there are many


class Part(NamedTuple):
    """A term of an equation: the name of a column, and the text before and after it."""

    before: str
    name: str = ""
    after: str = ""


def equations(facts: Facts) -> list[list[Part]]:
    """Return the equations: some columns as combinations of the others, or the normals."""
    estimate, names = facts["estimate"], facts["data"]["columns"]
    c, solved = estimate["codimension"], estimate.get("solved")
    if solved is not None:
        return [_one_solved(one, names) for one in solved]
    shown = c if c <= min(MOST_EQUATIONS, len(estimate["normals"])) else SHOWN_FIRST
    return [
        _one_normal(normal, b, facts)
        for normal, b in zip(estimate["normals"][:shown], estimate["intercept"], strict=False)
    ]


def constants(facts: Facts) -> list[str]:
    """Return the nearly constant columns of a table, with the value that they have."""
    names, found = facts["data"]["columns"], facts["estimate"].get("constants") or []
    texts = [
        f"{short(column_name(names, one['column']), 28)} = "
        f"{number(one['constant'], fewest_digits(one['constant'], 1.0, one['error']))}"
        for one in found[:TERMS]
    ]
    return [*texts, f"{len(found) - TERMS} more"] if len(found) > TERMS else texts


def _one_solved(one: Facts, names: list[str]) -> list[Part]:
    """Write column = terms + constant, with as many digits as the inliers' values need."""
    error, constant = one["error"], one["constant"]
    terms = [
        (term["value"], fewest_digits(term["value"], term["size"], error), term["column"])
        for term in one["terms"]
    ]
    parts = _sum(terms, one["more"], names)
    if constant or not parts:
        parts.append(_term(constant, fewest_digits(constant, 1.0, error), first=not parts))
    return [Part("", column_name(names, one["column"]), " = "), *parts]


def _one_normal(normal: list[float], intercept: float, facts: Facts) -> list[Part]:
    """Write normal @ x = intercept, the largest coefficient positive; it holds near the rows."""
    at, error = facts["estimate"]["location"], _allowed_error(facts)
    largest = max(normal, key=abs)
    sign = 1.0 if largest >= 0 else -1.0
    values = {j: sign * v for j, v in enumerate(normal) if abs(v) > 1e-12 * abs(largest)}
    kept = sorted(sorted(values, key=lambda j: -abs(values[j]))[:TERMS])
    terms = [(values[j], digits_needed(values[j], at[j], error), j) for j in kept]
    right = number(sign * intercept, max(6, digits_needed(intercept, 1.0, error)))
    parts = _sum(terms, len(values) - len(kept), facts["data"]["columns"])
    return [*parts, Part(f" = {right}")]


def _sum(terms: list[tuple[float, int, int]], more: int, names: list[str]) -> list[Part]:
    """Write terms, each a coefficient, its digits and its column, and how many are left out."""
    parts = [
        _term(value, digits, column_name(names, j), first=k == 0)
        for k, (value, digits, j) in enumerate(terms)
    ]
    return [*parts, Part(f" + {plural(more, 'smaller term')}")] if more else parts


def _term(value: float, shown: int, column: str = "", *, first: bool) -> Part:
    """Write a signed coefficient before its column, or alone; a factor of 1 is left out."""
    joint = ("−" if value < 0 else "") if first else (" − " if value < 0 else " + ")
    factor = number(abs(value), shown)
    if column[:1].isdigit():  # "0.5 400 nm" would read as one number
        factor += " · "
    elif column:
        factor = "" if factor == "1" else f"{factor} "
    return Part(joint + factor, column)


def mean(facts: Facts) -> str:
    """Return a point on an affine subspace."""
    error, location = _allowed_error(facts), facts["estimate"]["location"]
    pairs = list(zip(facts["data"]["columns"], location, strict=False))
    at = ", ".join(
        f"{short(n, 20)} = {number(v, max(5, digits_needed(v, 1.0, error)))}"
        for n, v in pairs[:TERMS]
    )
    return at + (" …" if len(location) > TERMS else "")


def _allowed_error(facts: Facts) -> float:
    """Return by how much a written equation may be off at the rows; 0 means any.

    Far from the origin a coefficient is multiplied by a large number, and its digits matter.
    """
    estimate, off = facts["estimate"], facts["data"]["off_origin"]
    if not estimate["affine"]:
        return 0.0
    radius = math.hypot(*estimate["location"]) / off if off else 0.0
    allowed: float = max(estimate["threshold"] / 10, radius / 10_000)
    return allowed / (len(estimate["location"]) + 1)
