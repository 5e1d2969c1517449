"""Small pure functions that draw: scales, ticks, axes and the shapes of a chart."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from perpend.report._html import Html, join, tag
from perpend.report._text import number


class Box(NamedTuple):
    """The picture and the area inside it where the data is drawn."""

    width: float = 460
    height: float = 270
    left: float = 52
    right: float = 14
    top: float = 14
    bottom: float = 46

    @property
    def inner_width(self) -> float:
        """Width of the area."""
        return self.width - self.left - self.right

    @property
    def inner_height(self) -> float:
        """Height of the area."""
        return self.height - self.top - self.bottom


Scale = Callable[[float], float]


def linear(low: float, high: float, begin: float, end: float) -> Scale:
    """Return the map from data to pixels.

    >>> linear(0, 10, 100, 200)(5)
    150.0
    """
    span = (high - low) or 1.0
    return lambda value: begin + (value - low) / span * (end - begin)


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round numbers between two ends.

    >>> ticks(0, 9.3)
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    rough = (high - low) / wanted
    if not rough > 0 or not math.isfinite(rough):
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough), 10 * power)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def decade_ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Return whole powers of ten between two exponents, or round numbers if there are too few.

    >>> decade_ticks(-3.2, 0.1)
    [-3.0, -2.0, -1.0, 0.0]
    """
    every = max(1, math.ceil((high - low) / wanted))
    first = math.ceil(low / every - 1e-9) * every
    powers = [float(k) for k in range(first, math.floor(high + 1e-9) + 1, every)]
    if len(powers) >= 2:
        return powers
    steps = [
        math.log10(m) + k for k in range(math.floor(low), math.ceil(high)) for m in range(1, 10)
    ]
    return [step for step in steps if low <= step <= high]


def left_margin(labelled: Sequence[tuple[float, str]]) -> float:
    """Return the room that the texts of the ticks and the title of the axis need side by side.

    >>> left_margin([(0.0, "1"), (-3.0, "0.001")])
    71
    """
    return 36 + 7 * max((len(label) for _, label in labelled), default=0)


def pixels(value: float) -> str:
    """Return a coordinate, short.

    >>> pixels(12.3456), pixels(3.0)
    ('12.35', '3')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    """Return a straight line."""
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return tag("line", class_=class_, **{key: pixels(value) for key, value in ends.items()})


def rect(x: float, y: float, width: float, height: float, class_: str) -> Html:
    """Return a rectangle."""
    sides = {"x": x, "y": y, "width": max(width, 0), "height": max(height, 0)}
    return tag("rect", class_=class_, **{key: pixels(value) for key, value in sides.items()})


def text(x: float, y: float, content: object, class_: str = "tick", anchor: str = "middle") -> Html:
    """Return a text."""
    return tag("text", content, x=pixels(x), y=pixels(y), class_=class_, text_anchor=anchor)


def dots(points: Sequence[tuple[float, float]], class_: str) -> Html:
    """Return many dots as one path: lines of no length with round ends."""
    steps = "".join(f"M{pixels(x)} {pixels(y)}h0" for x, y in points)
    return tag("path", d=steps, class_=f"dots {class_}")


def curve(points: Sequence[tuple[float, float]], class_: str) -> Html:
    """Return a line through points."""
    return tag(
        "polyline", points=" ".join(f"{pixels(x)},{pixels(y)}" for x, y in points), class_=class_
    )


def axes(
    box: Box,
    x_ticks: Sequence[tuple[float, str]],
    y_ticks: Sequence[tuple[float, str]],
    x_label: str,
    y_label: str,
) -> Html:
    """Return grid, tick labels and titles; the ticks are pixels with their texts."""
    bottom, right = box.height - box.bottom, box.width - box.right
    middle = box.top + box.inner_height / 2
    return join(
        [
            [line(box.left, y, right, y, "grid") for y, _ in y_ticks],
            [text(box.left - 6, y + 4, label, anchor="end") for y, label in y_ticks],
            [text(x, bottom + 16, label) for x, label in x_ticks],
            line(box.left, bottom, right, bottom, "axis"),
            text(box.left + box.inner_width / 2, box.height - 8, x_label, "label"),
            tag(
                "text",
                y_label,
                class_="label",
                text_anchor="middle",
                transform=f"translate(13 {pixels(middle)}) rotate(-90)",
            ),
        ]
    )


def picture(box: Box, content: Html, description: str, identifier: str) -> Html:
    """Return an SVG with a description for those who cannot see it."""
    return tag(
        "svg",
        tag("title", description, id=f"{identifier}-title"),
        content,
        id=identifier,
        viewBox=f"0 0 {pixels(box.width)} {pixels(box.height)}",
        role="img",
        aria_labelledby=f"{identifier}-title",
    )


def power(exponent: float) -> str:
    """Return ten to a power as a tick shows it.

    >>> power(-2.0), power(0.0), power(-9.0)
    ('0.01', '1', '10⁻⁹')
    """
    if -3 <= exponent <= 4:
        return number(10.0**exponent)
    return number(10.0**exponent).replace("1 × ", "")
