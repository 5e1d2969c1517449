"""How methods agree on the same rows, and how long they took."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.plots._axes import draw as draw_picture
from perpend.plots._display import Display
from perpend.plots._picture import SHADES, Axis, Cells, Dots, Layer, Picture, Text, empty, ends
from perpend.plots._words import number, plural

SHADE_LABELS = (0.0, 0.9, 0.95, 0.99, 0.999)  # least shares of the shades, from light to dark
SHADE_ANGLES = (90.0, 20.0, 5.0, 1.0, 0.1)  # likewise the largest angles in degrees
LETTERS = 52.0  # that fit into a panel


@dataclass(eq=False, repr=False)
class ComparisonDisplay(Display):
    """Methods in pairs: equal labels and angles between subspaces; and processor times.

    The darker a cell, the more the two methods agree. Columns are in the order of the rows. Methods
    without labels or without a subspace have white cells. `ax_` is an array of three axes.

    Examples
    --------
    >>> import perpend
    >>> from perpend.datasets import make_subspace
    >>> data = make_subspace(200, 100, n_features=6, codimension=2, random_state=0)
    >>> found = perpend.compare(data.X, methods=["DPCP", "RSGM", "PCA"], random_state=0)
    >>> found.plot().names
    ('DPCP', 'RSGM', 'PCA')
    """

    names: Sequence[str]  # of m methods
    label_agreement: Array  # (m, m) share of rows with equal labels; NaN: unknown
    angle: Array  # (m, m) largest principal angle in degrees; NaN: unknown
    seconds: Array  # (m,) processor time; NaN for methods without a result

    size, _grid = (4.6, 5.2), (1, 3)

    def __post_init__(self) -> None:
        self.names = tuple(self.names)

    @classmethod
    def from_comparison(cls, comparison: Any, *, ax: Any = None) -> Self:
        """Draw what `perpend.compare` returned.

        Parameters
        ----------
        comparison : perpend.comparison.Comparison
        """
        times = [row.cpu_seconds if row.problem is None else np.nan for row in comparison.rows]
        matrices = comparison.label_agreement, comparison.angle
        return cls(comparison.methods, *matrices, np.array(times)).plot(ax)

    @property
    def description(self) -> str:
        """The pictures in words."""
        return " ".join(picture.description for picture in self._pictures())

    def _pictures(self) -> tuple[Picture, Picture, Picture]:
        return self._cells("labels"), self._cells("angle"), self._times()

    def _cells(self, which: str) -> Picture:
        """Describe a matrix; the first method is at the top."""
        m = len(self.names)
        if which == "labels":
            M, title = self.label_agreement, "Equal labels"
            levels = _shades(M, SHADE_LABELS)
            steps = ", ".join(f"{100 * share:g} %" for share in SHADE_LABELS[1:])
            words = "share of rows with equal labels", f"shades from {steps}"
        else:
            M, title = self.angle, "Angle between subspaces"
            levels = _shades(-M, [-a for a in SHADE_ANGLES])
            steps = ", ".join(f"{degrees:g}°" for degrees in SHADE_ANGLES[1:])
            words = "largest angle between subspaces", f"shades up to {steps}"
        with_first = [
            f"{name} {100 * v:.1f} %" if which == "labels" else f"{name} {number(v, 2)}°"
            for name, v in zip(self.names[1:], M[0, 1:], strict=True)
            if np.isfinite(v)
        ]
        said = f"{words[0].capitalize()} for {plural(m, 'method')}, {words[1]}"
        said += f"; with {self.names[0]}: {', '.join(with_first)}." if with_first else "."
        edges = np.arange(m + 1) + 0.5
        layers = [Cells(edges, edges, levels[::-1])]
        x = Axis(
            words[1], 0.5 - self._beside * m, m + 0.5, whole=True, ticks=range(1, m + 1, 1 + m // 8)
        )
        return Picture(title, said, x, _lines(m), [*layers, *self._written()])

    @property
    def _beside(self) -> float:
        """Width of the names, in widths of what they stand beside."""
        share = min((4 + max(map(len, self.names))) / LETTERS, 0.6)
        return share / (1 - share)

    def _written(self, x: float = 0.5) -> list[Text]:
        """Return the names beside the lines, each with the number of its column."""
        m = len(self.names)
        return [Text(x, m - i, f"{name} {i + 1}", ends=True) for i, name in enumerate(self.names)]

    def _times(self) -> Picture:
        title, seen = "Processor time", np.isfinite(self.seconds)
        if not seen.any():
            return empty(title, "no method has a result")
        m, times = len(self.names), np.maximum(self.seconds[seen], 1e-4)
        low, high = ends(times, log=True)
        places = m - np.flatnonzero(seen)
        first = low * (low / high) ** self._beside  # as wide as beside the cells
        said = ", ".join(
            f"{name} {number(t, 2)} s"
            for name, t in zip(np.array(self.names)[seen], times, strict=True)
        )
        layers: list[Layer] = [Dots(times, places), *self._written(low)]
        x = Axis("seconds, all threads", first, high, log=True, ticks=_decades(low, high))
        return Picture(title, f"Processor times: {said}.", x, _lines(m), layers)

    def _place(self, ax: Any, draw: Callable[[Any], None]) -> None:  # noqa: ARG002
        axes = np.ravel(np.asarray(ax, dtype=object))
        if len(axes) != 3:
            raise InputError(f"ax has {len(axes)} axes; expected 3, as of figure.subplots(1, 3).")
        for one, picture in zip(axes, self._pictures(), strict=True):
            draw_picture(one, picture)
        self.ax_, self.figure_ = axes, axes[0].figure


def _lines(m: int) -> Axis:
    return Axis("", 0.5, m + 0.5, ticks=())


def _shades(M: Array, limits: Sequence[float]) -> Array:
    """Return how many of the ascending limits are reached; 0 where nothing is known."""
    levels = np.searchsorted(limits, np.nan_to_num(M), side="right")
    return np.where(np.isfinite(M), np.clip(levels, 1, SHADES), 0)


def _decades(low: float, high: float) -> list[float]:
    powers = range(int(np.ceil(np.log10(low))), int(np.floor(np.log10(high))) + 1)
    return [10.0**k for k in powers] or [low]
