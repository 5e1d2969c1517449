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
        color = COLOR[getattr(layer, "color", "text")]
        above = 1.5 + level / len(picture.layers)
        add(layer, ax, picture, {"color": color, "label": layer.name or None, "zorder": above})
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
def add(layer: Any, ax: Any, picture: Picture, style: dict[str, Any]) -> None:
    """Draw a layer with its colour, its label and its level above the others."""


@add.register
def _(layer: Line, ax: Any, _: Picture, style: dict[str, Any]) -> None:
    marker = "o" if layer.dots else None
    ax.plot(layer.x, layer.y, linewidth=layer.width, marker=marker, solid_capstyle="round", **style)


@add.register
def _(layer: Dots, ax: Any, _: Picture, style: dict[str, Any]) -> None:
    fill = "white" if layer.hollow else style["color"]
    size = {"markersize": layer.size, "markeredgewidth": 1.3}
    ax.plot(layer.x, layer.y, "o", markerfacecolor=fill, **size, **style)


@add.register
def _(layer: Bars, ax: Any, _: Picture, style: dict[str, Any]) -> None:
    ax.stairs(layer.heights, layer.borders, fill=True, alpha=0.4, linewidth=0, **style)


@add.register
def _(layer: Band, ax: Any, _: Picture, style: dict[str, Any]) -> None:
    ax.fill_between(layer.x, layer.low, layer.high, linewidth=0, **style)


@add.register
def _(layer: Mark, ax: Any, picture: Picture, style: dict[str, Any]) -> None:
    ax.axvline(layer.x, ymax=1 - picture.room, linestyle="--", linewidth=1.2, **style)


@add.register
def _(layer: Cells, ax: Any, _: Picture, style: dict[str, Any]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    levels = np.ma.masked_less_equal(layer.levels, 0)
    colors = {"vmin": 0, "vmax": SHADES, "cmap": LinearSegmentedColormap.from_list("", CELLS)}
    ax.pcolormesh(layer.x, layer.y, levels, **colors, zorder=style["zorder"], rasterized=True)
    ax.grid(visible=False, axis="y")


@add.register
def _(layer: Text, ax: Any, _: Picture, style: dict[str, Any]) -> None:
    right, side = (-5, "right") if layer.ends else (5, "left")
    _write(ax, layer, right, 0, ha=side, zorder=style["zorder"])


def _add_labels(ax: Any, labels: list[Label]) -> None:
    """Write labels where there is room for them."""
    box, points = ax.get_window_extent(), 72 / ax.figure.figure.dpi

    def at(x: float, y: float) -> tuple[float, float]:
        right, up = (ax.transData.transform((x, y)) - [box.x0, box.y0]) * points
        return float(right), float(up)

    for label, x, y in placed(labels, at, box.width * points, LABEL_SIZE):
        right, up = at(label.x, label.y)
        color = QUIET if label.color == "muted" else COLOR[label.color]
        weight = "bold" if label.strong else "normal"
        _write(ax, label, x - right, y - up, ha="center", zorder=6, color=color, fontweight=weight)


def _write(ax: Any, words: Text | Label, right: float, up: float, **style: Any) -> None:
    """Write words beside their point, with a white outline, so that they stand out."""
    from matplotlib.patheffects import withStroke

    ax.annotate(
        words.text, (words.x, words.y), xytext=(right, up), textcoords="offset points",
        va="center", fontsize=LABEL_SIZE,
        path_effects=[withStroke(linewidth=2.5, foreground="white")], **style,
    )  # fmt: skip
