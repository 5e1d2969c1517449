"""A picture in plain arrays and words, whatever draws it.

A display describes itself as a `Picture`: two axes, and layers from the lowest to the highest. Two
renderers draw it: `perpend.plots._axes` with matplotlib, and `perpend.report._svg` as SVG. Colours
have names, which each renderer looks up: "in" and "out" for inliers and outliers, "muted" for
details, "light" for areas, "text" for lines that must stand out.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from perpend._json import plain
from perpend._typing import Array

STORED_DIGITS = 5  # of a number in a stored picture; a screen shows fewer
LETTER = 0.64  # width of a letter, in heights of the font
SHADES = 5  # levels of `Cells`


class Axis(NamedTuple):
    """One axis: its label and its range."""

    label: str
    low: float
    high: float
    log: bool = False
    whole: bool = False  # whether only whole numbers have a meaning
    ticks: Sequence[float] | None = None  # by default at round numbers

    def share(self, value: Any) -> Any:
        """Return the positions of values: 0 at the lower end, 1 at the upper one."""
        low, high, value = self.low, self.high, np.asarray(value, dtype=float)
        if self.log:
            low, high = math.log10(low), math.log10(high)
            value = np.log10(np.maximum(value, np.finfo(float).tiny))
        return (value - low) / ((high - low) or 1.0)

    def at(self, share: float) -> float:
        """Return the value at a share of the axis; the inverse of `share`."""
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)


class Line(NamedTuple):
    """A line through points; NaN interrupts it."""

    x: Array
    y: Array
    color: str = "in"
    name: str = ""
    width: float = 1.8
    dots: bool = False  # whether its points are marked


class Dots(NamedTuple):
    """Points, filled or hollow."""

    x: Array
    y: Array
    color: str = "in"
    name: str = ""
    hollow: bool = False
    size: float = 5.0


class Bars(NamedTuple):
    """Bars (k,) between borders (k + 1,), from zero up."""

    borders: Array
    heights: Array
    color: str = "in"
    name: str = ""


class Band(NamedTuple):
    """The area between two curves."""

    x: Array
    low: Array
    high: Array
    color: str = "light"
    name: str = ""


class Mark(NamedTuple):
    """A dashed line from the bottom to the top."""

    x: float
    color: str = "muted"
    name: str = ""


class Cells(NamedTuple):
    """Shaded cells between borders (k + 1,) and (m + 1,): levels (m, k) from 0, none, to SHADES."""

    x: Array
    y: Array
    levels: Array
    color: str = "in"
    name: str = ""


class Text(NamedTuple):
    """Words to the right of a point; to its left if they end there."""

    x: float
    y: float
    text: str
    ends: bool = False
    name: str = ""


class Label(NamedTuple):
    """Words near a point, if there is room for them."""

    x: float
    y: float
    text: str
    color: str = "in"
    strong: bool = False
    name: str = ""


Layer = Line | Dots | Bars | Band | Mark | Cells | Text | Label
LAYERS: dict[str, Callable[..., Layer]] = {
    kind.__name__: kind for kind in (Line, Dots, Bars, Band, Mark, Cells, Text, Label)
}


class Picture(NamedTuple):
    """Axes and layers; or a note, if there is nothing to draw."""

    title: str
    description: str  # alt text
    x: Axis
    y: Axis
    layers: Sequence[Layer] = ()
    note: str = ""
    room: float = 0.0  # share of the height for a legend inside the axes

    def stored(self) -> dict[str, Any]:
        """Return it as JSON's own types, with as many digits as a screen shows."""
        values = self._asdict() | {"x": self.x._asdict(), "y": self.y._asdict()}
        values["layers"] = [{"kind": type(one).__name__, **one._asdict()} for one in self.layers]
        stored: dict[str, Any] = _rounded(plain(values))
        return stored

    @classmethod
    def restored(cls, stored: dict[str, Any]) -> "Picture":
        """Return a stored picture; anything else raises TypeError or LookupError.

        >>> picture = empty("None", "nothing to see")
        >>> Picture.restored(picture.stored()) == picture
        True
        """
        layers = [dict(one) for one in stored["layers"]]
        made = tuple(LAYERS[one.pop("kind")](**one) for one in layers)
        axes = {key: Axis(**stored[key]) for key in ("x", "y")}
        return cls(**{**stored, **axes, "layers": made})


def empty(title: str, note: str, description: str = "") -> Picture:
    """Return a picture that only says why there is nothing to draw."""
    nothing = Axis("", 0.0, 1.0)
    return Picture(title, description or note, nothing, nothing, note=note)


def ends(*values: Array, log: bool = False, margin: float = 0.05) -> tuple[float, float]:
    """Return the ends of an axis that holds all values, with a margin.

    >>> ends(np.array([0.0, 10.0]))
    (-0.5, 10.5)
    """
    every = np.concatenate([np.ravel(np.asarray(value, dtype=float)) for value in values])
    low, high = float(np.nanmin(every)), float(np.nanmax(every))
    if log:
        more = (high / low) ** margin if high > low else 2.0
        return low / more, high * more
    wider = margin * (high - low) or margin * abs(high) or 1.0
    return low - wider, high + wider


def placed(
    labels: Iterable[Label],
    at: Callable[[float, float], tuple[float, float]],
    width: float,
    size: float,
) -> list[tuple[Label, float, float]]:
    """Find places (their middles) for labels near their points, inside the axes and apart.

    The most important labels come first. `at` leads from data to points (1/72 inch, or any unit)
    right of and above the lower left corner; `width` of the axes and `size` of the font have the
    same unit.
    """
    places, taken = list[tuple[Label, float, float]](), list[tuple[float, ...]]()
    for label in labels:
        x, y = at(label.x, label.y)
        half, up = LETTER * size * len(label.text) / 2, 0.75 * size
        inside, side = min(max(x, half), width - half) - x, half + size
        away, near = 1.55 * size, 0.9 * size
        above_or_below = (inside, away), (inside, -away)
        beside = (-side, near), (side, -near), (-side, -near), (side, near)
        for dx, dy in (*above_or_below, *beside):
            box = (x + dx - half, y + dy - up, x + dx + half, y + dy + up)
            fits = box[0] >= -1e-9 and box[2] <= width + 1e-9 and box[1] >= 0
            if fits and not any(_meet(box, other) for other in taken):
                taken.append(box)
                places.append((label, x + dx, y + dy))
                break
    return places


def _meet(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Say whether two boxes (left, bottom, right, top) overlap."""
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.{STORED_DIGITS}g}") if isinstance(value, float) else value
