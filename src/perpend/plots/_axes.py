"""Pictures drawn with matplotlib."""

from functools import singledispatch
from typing import Any

import numpy as np

from perpend.plots._picture import (
    SHADES,
    Axis,
    Band,
    Bars,
    Cells,
    Dots,
    Label,
    Line,
    Mark,
    Picture,
    Text,
    placed,
)
from perpend.plots._style import MISSING_COLOR, MUTED, RIGHT, WRONG

COLOR = {"in": RIGHT, "out": WRONG, "muted": MUTED, "light": MISSING_COLOR, "text": "black"}
CELLS = "#FFFFFF", "#CFE3F1", "#8DB9D8"  # from no contrast to the largest
QUIET = "#555555"  # of minor words
LABEL_SIZE = 9  # points


def draw(ax: Any, picture: Picture) -> None:
    """Draw a picture onto axes."""
    ax.set_title(picture.title)
    if picture.note:
        ax.text(
            0.5, 0.5, picture.note, ha="center", va="center", transform=ax.transAxes, color=QUIET
        )
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        ax.spines[:].set_visible(False)
        return
    # There is room for the legend above the content.
    _set_axis(ax, "x", picture.x, picture.x.high)
    _set_axis(ax, "y", picture.y, picture.y.at(1 / (1 - picture.room)))
    for level, layer in enumerate(picture.layers):
        add(layer, ax, picture, 1.5 + level / len(picture.layers))
    _add_labels(ax, [layer for layer in picture.layers if isinstance(layer, Label)])
    if any(layer.name for layer in picture.layers):
        ax.legend(loc="upper center", ncols=2, columnspacing=1.2, handlelength=1.4)


def _set_axis(ax: Any, which: str, axis: Axis, high: float) -> None:
    side = getattr(ax, f"{which}axis")
    scale = {f"{which}scale": "log"} if axis.log else {}
    ax.set(**scale, **{f"{which}label": axis.label, f"{which}lim": (axis.low, high)})
    if axis.ticks is not None:
        side.set_ticks(list(axis.ticks))
    elif axis.log:
        few_ticks(side)
    elif axis.whole:
        side.get_major_locator().set_params(integer=True)


def few_ticks(axis: Any) -> None:
    """Label 1, 2, 5 of each decade of a short logarithmic axis, and every decade of a long one."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_minor_formatter(NullFormatter())
    low, high = axis.get_view_interval()
    if high < 1e3 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))


@singledispatch
def add(layer: Any, ax: Any, picture: Picture, level: float) -> None:
    """Draw a layer, above those of lower levels."""


@add.register
def _(layer: Line, ax: Any, _: Picture, level: float) -> None:
    ax.plot(
        layer.x, layer.y, color=COLOR[layer.color], label=layer.name or None, zorder=level,
        linewidth=layer.width, marker="o" if layer.dots else None, solid_capstyle="round",
    )  # fmt: skip


@add.register
def _(layer: Dots, ax: Any, _: Picture, level: float) -> None:
    color = COLOR[layer.color]
    ax.plot(
        layer.x, layer.y, "o", color=color, markersize=layer.size, markeredgewidth=1.3,
        markerfacecolor="white" if layer.hollow else color, label=layer.name or None, zorder=level,
    )  # fmt: skip


@add.register
def _(layer: Bars, ax: Any, _: Picture, level: float) -> None:
    ax.stairs(
        layer.heights, layer.borders, fill=True, color=COLOR[layer.color], alpha=0.4, zorder=level,
        linewidth=0, label=layer.name or None,
    )  # fmt: skip


@add.register
def _(layer: Band, ax: Any, _: Picture, level: float) -> None:
    ax.fill_between(
        layer.x, layer.low, layer.high, color=COLOR[layer.color], linewidth=0, zorder=level,
        label=layer.name or None,
    )  # fmt: skip


@add.register
def _(layer: Mark, ax: Any, picture: Picture, level: float) -> None:
    ax.axvline(
        layer.x, ymax=1 - picture.room, color=COLOR[layer.color], linestyle="--", linewidth=1.2,
        label=layer.name or None, zorder=level,
    )  # fmt: skip


@add.register
def _(layer: Cells, ax: Any, _: Picture, level: float) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    ax.pcolormesh(
        layer.x, layer.y, np.ma.masked_less_equal(layer.levels, 0), vmin=0, vmax=SHADES,
        cmap=LinearSegmentedColormap.from_list("contrast", CELLS), zorder=level, rasterized=True,
    )  # fmt: skip
    ax.grid(visible=False, axis="y")


@add.register
def _(layer: Text, ax: Any, _: Picture, level: float) -> None:
    ax.annotate(
        layer.text, (layer.x, layer.y), xytext=(-5 if layer.ends else 5, 0), fontsize=LABEL_SIZE,
        textcoords="offset points", va="center", ha="right" if layer.ends else "left",
        zorder=level, path_effects=_outlined(),
    )  # fmt: skip


def _add_labels(ax: Any, labels: list[Label]) -> None:
    """Write labels where there is room for them."""
    box, points = ax.get_window_extent(), 72 / ax.figure.figure.dpi

    def at(x: float, y: float) -> tuple[float, float]:
        right, up = (ax.transData.transform((x, y)) - [box.x0, box.y0]) * points
        return float(right), float(up)

    for label, x, y in placed(labels, at, box.width * points, LABEL_SIZE):
        here = at(label.x, label.y)
        ax.annotate(
            label.text, (label.x, label.y), xytext=(x - here[0], y - here[1]),
            textcoords="offset points", ha="center", va="center", zorder=6, fontsize=LABEL_SIZE,
            color=QUIET if label.color == "muted" else COLOR[label.color],
            fontweight="bold" if label.strong else "normal",
            path_effects=_outlined(),
        )  # fmt: skip


def _outlined() -> list[Any]:
    """Return a white outline, so that words stand out."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.5, foreground="white")]
