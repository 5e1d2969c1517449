"""Pictures drawn as SVG: scales, ticks and shapes, which the page's templates write."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.plots import _picture as pic
from perpend.plots._words import number

# The page's style has a class for each; a stored picture with another colour is refused.
COLOR_CLASSES = {name: f"c-{name}" for name in ("in", "out", "muted", "light", "text")}
TEXT = 12.0  # pixels
LINE_HEIGHT = 15.0  # pixels from one line of a text to the next
DECADE = 1000.0  # units of a picture that can be zoomed: the script's, too


class Shape(NamedTuple):
    """An element without children."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


class Box(NamedTuple):
    """The area of a picture where the data is drawn, in pixels."""

    left: float
    top: float
    right: float
    bottom: float


def drawing(
    picture: pic.Picture,
    identifier: str,
    *,
    size: tuple[float, float] = (460.0, 270.0),
    zoom: bool = False,
) -> dict[str, Any]:
    """Return what the template writes.

    A picture to be zoomed has a logarithmic x, and no words among its content.
    """
    y_ticks = tick_texts(picture.y, 5)
    left = 36 + 7 * max((len(label) for _, label in y_ticks), default=0)
    box = Box(left, 14.0, size[0] - (44.0 if zoom else 14.0), size[1] - 46.0)
    pen = Pen(picture, box, zoom=zoom)
    for layer in picture.layers:
        pen.add(layer)
    if not zoom:
        pen.add_labels([layer for layer in picture.layers if isinstance(layer, pic.Label)])
    inner = None
    if zoom:
        low, high = (DECADE * math.log10(end) for end in (picture.x.low, picture.x.high))
        top = picture.y.high
        inner = {
            **_pixels(x=box.left, y=box.top),
            **_pixels(width=box.right - box.left, height=box.bottom - box.top),
            "viewBox": " ".join(map(coordinate, (low, -top, high - low, top))),
        }
    frame = Pen(picture, box, zoom=False)
    return {
        "identifier": identifier,
        "description": picture.description,
        "size": size,
        "box": box,
        "x_ticks": [(float(frame.x(tick)), text) for tick, text in tick_texts(picture.x, 6)],
        "y_ticks": [(float(frame.y(tick)), text) for tick, text in y_ticks],
        "labels": (picture.x.label, picture.y.label),
        "content": pen.shapes,
        "inner": inner,  # attributes of the element around the content, if it can be zoomed
        "legend": [  # class and words
            (f"{type(layer).__name__.lower()} {COLOR_CLASSES[layer.color]}", layer.name)
            for layer in picture.layers
            if layer.name and not isinstance(layer, pic.Text)
        ],
    }


class Pen:
    """Draws layers into a list of shapes."""

    def __init__(self, picture: pic.Picture, box: Box, *, zoom: bool) -> None:
        self.box, self.zoom, self.shapes = box, zoom, list[Shape]()
        self.x: Callable[[Any], Array] = lambda x: DECADE * np.log10(_numbers(x))
        self.y: Callable[[Any], Array] = lambda y: -_numbers(y)
        if not zoom:
            # What is far outside the picture is drawn a little outside.
            self.x = lambda x: _between(box.left, box.right, picture.x.share(_numbers(x)))
            self.y = lambda y: _between(box.bottom, box.top, picture.y.share(_numbers(y)))
        self.top, self.bottom = float(self.y(picture.y.high)), float(self.y(picture.y.low))

    def shape(self, tag: str, kind: str, text: str = "", **attributes: str) -> None:
        """Add an element of a class."""
        self.shapes.append(Shape(tag, {"class": kind, **attributes}, text))

    def add(self, layer: pic.Layer) -> None:
        """Draw a layer; labels come last."""
        color = COLOR_CLASSES[getattr(layer, "color", "text")]
        match layer:
            case pic.Line(x, y):
                path = _path(self.x(x), self.y(y))
                self.shape("path", f"line {color}", d=path, **_pixels(stroke_width=layer.width))
                if layer.dots:
                    self._dots(pic.Dots(x, y), color)
            case pic.Dots():
                self._dots(layer, color)
            case pic.Bars(borders, heights):
                x, y = self.x(borders), self.y(heights)
                for left, right, top in zip(x[:-1], x[1:], y, strict=True):
                    self._rect(f"bar {color}", Box(left, top, right, self.bottom))
            case pic.Band(x, low, high):
                x, low, high = self.x(x), self.y(low), self.y(high)
                around = _path(np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]]))
                self.shape("path", f"band {color}", d=f"{around}Z")
            case pic.Mark(x):
                top = -1e12 if self.zoom else self.top  # zooming changes the height
                ends = _pixels(x1=self.x(x), y1=top, x2=self.x(x), y2=self.bottom)
                self.shape("line", f"mark {color}", **ends)
            case pic.Cells():
                self._cells(layer, color)
            case pic.Text() if not self.zoom:
                self._words(layer)

    def add_labels(self, labels: list[pic.Label]) -> None:
        """Write labels where there is room for them."""

        def at(x: float, y: float) -> tuple[float, float]:
            return float(self.x(x)) - self.box.left, self.box.bottom - float(self.y(y))

        for label, x, y in pic.placed(labels, at, self.box.right - self.box.left, TEXT):
            place = _pixels(x=self.box.left + x, y=self.box.bottom - y + 4)
            kind = "mark-label" if label.strong else "mark-label quiet"
            self.shape("text", kind, label.text, **place, **{"text-anchor": "middle"})

    def _dots(self, layer: pic.Dots, color: str) -> None:
        x, y = self.x(layer.x), self.y(layer.y)
        seen = (x >= self.box.left) & (x <= self.box.right) & (y >= self.top) & (y <= self.bottom)
        pairs = zip(x[seen], y[seen], strict=True)
        path = "".join(f"M{coordinate(a)} {coordinate(b)}h0" for a, b in pairs)
        size = 1.4 * layer.size
        self.shape("path", f"dots {color}", d=path, **_pixels(stroke_width=size))
        if layer.hollow:
            self.shape("path", "dots c-ground", d=path, **_pixels(stroke_width=size - 3))

    def _cells(self, layer: pic.Cells, color: str) -> None:
        """Draw neighbours of the same level as one rectangle."""
        x, y = self.x(layer.x), self.y(layer.y)
        for bottom, top, row in zip(y[:-1], y[1:], layer.levels, strict=True):
            starts = [j for j in range(len(row)) if j == 0 or row[j] != row[j - 1]]
            for a, b in zip(starts, [*starts[1:], len(row)], strict=True):
                if row[a] > 0:
                    self._rect(f"shade {color} s{int(row[a])}", Box(x[a], top, x[b], bottom))

    def _words(self, layer: pic.Text) -> None:
        lines = layer.text.split("\n")
        x = float(self.x(layer.x)) + (-6 if layer.ends else 6)
        y = float(self.y(layer.y)) + 4 - LINE_HEIGHT * (len(lines) - 1) / 2
        anchor = {"text-anchor": "end" if layer.ends else "start"}
        for i, line in enumerate(lines):
            self.shape("text", "mark-label", line, **_pixels(x=x, y=y + i * LINE_HEIGHT), **anchor)

    def _rect(self, kind: str, box: Box) -> None:
        if box.top < box.bottom:
            sides = _pixels(width=box.right - box.left, height=box.bottom - box.top)
            self.shape("rect", kind, **_pixels(x=box.left, y=box.top), **sides)


def tick_texts(axis: pic.Axis, wanted: int) -> list[tuple[float, str]]:
    """Return round numbers along an axis, with their texts."""
    if axis.ticks is not None:
        return [(tick, number(tick)) for tick in axis.ticks]
    if axis.log:
        exponents = decade_ticks(math.log10(axis.low), math.log10(axis.high), wanted)
        return [(10.0**k, number(10.0**k).removeprefix("1 × ")) for k in exponents]
    round_numbers = ticks(axis.low, axis.high, wanted)
    return [(tick, number(tick)) for tick in round_numbers if not axis.whole or tick % 1 == 0]


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
    """Return whole powers of ten between two exponents, or 1, 2 and 5 if there are too few.

    >>> decade_ticks(-3.2, 0.1)
    [-3.0, -2.0, -1.0, 0.0]
    """
    every = max(1, math.ceil((high - low) / wanted))
    first = math.ceil(low / every - 1e-9) * every
    powers = [float(k) for k in range(first, math.floor(high + 1e-9) + 1, every)]
    if len(powers) > 2:
        return powers
    between = range(math.floor(low), math.ceil(high))
    steps = [math.log10(m) + k for k in between for m in (1, 2, 5)] + [float(math.ceil(high))]
    return [step for step in steps if low <= step <= high] or powers


def _numbers(values: Any) -> Array:
    """Return floats; stored pictures have None where a number is missing."""
    return np.asarray(values, dtype=float)


def _between(first: float, last: float, share: Array) -> Array:
    """Return pixels from shares; what is far outside is moved to a little outside."""
    return first + np.clip(share, -1.0, 2.0) * (last - first)


def _path(x: Sequence[float] | Array, y: Sequence[float] | Array) -> str:
    """Return a line through points, interrupted where one is missing."""
    steps, pen = [], "M"
    for a, b in zip(x, y, strict=True):
        if not math.isfinite(a) or not math.isfinite(b):
            pen = "M"
            continue
        steps.append(f"{pen}{coordinate(a)} {coordinate(b)}")
        pen = "L"
    return "".join(steps)


def coordinate(value: float) -> str:
    """Return a coordinate with two digits.

    >>> coordinate(12.3456), coordinate(3.0)
    ('12.35', '3')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _pixels(**coordinates: Any) -> dict[str, str]:
    return {key.replace("_", "-"): coordinate(float(value)) for key, value in coordinates.items()}
