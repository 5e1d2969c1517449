"""The picture of the profile: which codimension is seen best at which scale, and the answer."""

import math
from itertools import pairwise
from typing import Any, TypedDict

import numpy as np

from perpend.plots import ProfileDisplay
from perpend.plots._profile import scales_matter
from perpend.report import _svg as svg
from perpend.report._html import Html, join, tag
from perpend.report._text import count, number, plural

SHADES = 5  # levels of contrast; the page's style has as many
EACH = 9  # codimensions up to which each has its tick
LETTER = 6.7  # pixels, on average, of a bold one


class ProfileFacts(TypedDict):
    """The profile, as coarse as a picture shows it."""

    scales: list[float]  # logarithms to the base ten
    codimensions: list[int]
    shades: list[str]  # for each codimension a digit for each scale, 0 where nothing is seen
    bars: list[tuple[int, float, float]]  # plateaus: codimension, and two scales as above
    marks: list[tuple[int, float, int, bool]]  # codimension, noise, rows and whether it is chosen
    description: str


def profile_facts(model: Any) -> ProfileFacts | None:
    """Return what the picture is drawn from; None where the directions say as much."""
    if not scales_matter(model):
        return None
    shown = ProfileDisplay.of(model)
    # The root of the contrast, by which plateaus are weighed.
    shades = np.ceil(SHADES * np.sqrt(shown.contrast / np.max(shown.contrast))).astype(int)
    marked = {one["codimension"] for one in shown.structures}
    rows = [
        (int(c), "".join(map(str, shades[i])))
        for i, c in enumerate(shown.codimensions)
        if c in marked or np.any(shades[i])
    ]
    return ProfileFacts(
        scales=[round(float(s), 4) for s in np.log10(shown.scales)],
        codimensions=[c for c, _ in rows],
        shades=[row for _, row in rows],
        bars=[(bar.codimension, math.log10(bar.first), math.log10(bar.last)) for bar in shown.bars],
        marks=[
            (int(one["codimension"]), float(one["noise"]), round(one["members"]), one["chosen"])
            for one in shown.structures
        ],
        description=shown.description,
    )


def profile_chart(facts: ProfileFacts, rows: str) -> Html:
    """Draw shades, plateaus and structures; `rows` is what rows are called."""
    sizes, scales = facts["codimensions"], facts["scales"]
    noise = [math.log10(mark[1]) for mark in facts["marks"] if mark[1] > 0]
    low, high = min([*scales, *noise]), max([*scales, *noise])
    ticks = sizes if len(sizes) <= EACH else [int(t) for t in svg.ticks(sizes[0], sizes[-1], 5)]
    labels = [(float(c), str(c)) for c in ticks]
    box = svg.Box(left=svg.left_margin(labels), top=24)
    x = svg.linear(low, high, box.left, box.width - box.right)
    y = svg.linear(min(sizes) - 0.6, max(sizes) + 0.6, box.height - box.bottom, box.top)
    content = [
        svg.axes(
            box,
            [(x(t), svg.power(t)) for t in svg.decade_ticks(low, high, 5)],
            [(y(t), label) for t, label in labels],
            "scale: noise along one normal",
            "codimension",
        ),
        _shades(facts, x, y),
        [
            svg.line(x(first), y(c), x(last), y(c), f"plateau {_whose(facts, c)}")
            for c, first, last in facts["bars"]
        ],
        [_mark(mark, x, y, (low, rows), box) for mark in sorted(facts["marks"], key=_chosen)],
    ]
    return svg.picture(box, join(content), facts["description"], "profile")


def _chosen(mark: tuple[int, float, int, bool]) -> bool:
    return mark[3]


def _whose(facts: ProfileFacts, codimension: int) -> str:
    own = any(chosen and c == codimension for c, _, _, chosen in facts["marks"])
    return "own" if own else "other"


def _shades(facts: ProfileFacts, x: svg.Scale, y: svg.Scale) -> Html:
    """Return the shades; neighbours of the same one are one rectangle."""
    scales, sizes = facts["scales"], facts["codimensions"]
    borders = [
        scales[0],
        *[(a + b) / 2 for a, b in pairwise(scales)],
        scales[-1],
    ]
    made = []
    for c, row in zip(sizes, facts["shades"], strict=True):
        start = 0
        for j in range(1, len(row) + 1):
            if j < len(row) and row[j] == row[start]:
                continue
            if row[start] != "0":
                left, right = x(borders[start]), x(borders[j])
                top, bottom = y(c + 0.5), y(c - 0.5)
                shade = f"shade s{int(row[start])}"
                made.append(svg.rect(left, top, right - left, bottom - top, shade))
            start = j
    return join(made)


def _mark(
    mark: tuple[int, float, int, bool],
    x: svg.Scale,
    y: svg.Scale,
    at_least: tuple[float, str],
    box: svg.Box,
) -> Html:
    """Return the mark of a structure; that of the answer has its noise and rows beside it."""
    c, noise, members, chosen = mark
    low, rows = at_least
    across, up = x(max(math.log10(noise), low) if noise > 0 else low), y(c)
    text = f"noise {number(noise, 2)}, {count(members)} {rows}"
    dot = tag(
        "circle",
        tag("title", f"codimension {c}, {text}"),
        cx=svg.pixels(across),
        cy=svg.pixels(up),
        r=6 if chosen else 4.5,
        class_="structure own" if chosen else "structure other",
    )
    if not chosen:
        return dot
    half = LETTER * len(text) / 2
    middle = min(max(across, box.left + half), box.width - box.right - half)
    return join([dot, svg.text(middle, up - 12, text, "mark-label")])


def profile_caption(facts: ProfileFacts) -> str:
    """Say what the picture shows."""
    others = sum(not chosen for *_, chosen in facts["marks"])
    also = f" Hollow: {plural(others, 'other structure')} that was seen." if others == 1 else ""
    if others > 1:
        also = f" Hollow: {plural(others, 'other structure')} that were seen."
    return (
        "At each scale one number of normals is seen best; the stronger the colour, the clearer. "
        f"Where it stays the same over a range of scales (bars), there is a structure.{also}"
    )
