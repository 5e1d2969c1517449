"""Pictures drawn with matplotlib."""

from typing import Any

import numpy as np

from perpend.plots import _picture as pic
from perpend.plots._style import MISSING_COLOR, MUTED, RIGHT, WRONG, without_axes

COLOR = {"in": RIGHT, "out": WRONG, "muted": MUTED, "light": MISSING_COLOR, "text": "black"}
CELLS = "#FFFFFF", "#CFE3F1", "#8DB9D8"  # from no contrast to the largest
QUIET = "#555555"  # of minor words
LABEL_SIZE = 9  # points


def draw(ax: Any, picture: pic.Picture) -> None:
    """Draw a picture onto axes."""
    ax.set_title(picture.title)
    if picture.note:
        ax.text(
            0.5, 0.5, picture.note, ha="center", va="center", transform=ax.transAxes, color=QUIET
        )
        without_axes(ax)
        return
    # There is room for the legend above the content.
    _set_axis(ax, "x", picture.x, picture.x.high)
    _set_axis(ax, "y", picture.y, picture.y.at(1 / (1 - picture.room)))
    for level, layer in enumerate(picture.layers):
        _add(ax, layer, picture, 1.5 + level / len(picture.layers))
    _add_labels(ax, [layer for layer in picture.layers if isinstance(layer, pic.Label)])
    if any(layer.name for layer in picture.layers):
        ax.legend(loc="upper center", ncols=2, columnspacing=1.2, handlelength=1.4)


def _set_axis(ax: Any, which: str, axis: pic.Axis, high: float) -> None:
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


def _add(ax: Any, layer: pic.Layer, picture: pic.Picture, level: float) -> None:
    """Draw a layer above those of lower levels; labels come last."""
    color = COLOR[getattr(layer, "color", "text")]
    style: dict[str, Any] = {"color": color, "label": layer.name or None, "zorder": level}
    match layer:
        case pic.Line(x, y):
            marker = "o" if layer.dots else None
            ax.plot(x, y, linewidth=layer.width, marker=marker, solid_capstyle="round", **style)
        case pic.Dots(x, y):
            style |= {"markersize": layer.size, "markeredgewidth": 1.3}
            ax.plot(x, y, "o", markerfacecolor="white" if layer.hollow else color, **style)
        case pic.Bars(borders, heights):
            ax.stairs(heights, borders, fill=True, alpha=0.4, linewidth=0, **style)
        case pic.Band(x, low, high):
            ax.fill_between(x, low, high, linewidth=0, **style)
        case pic.Mark(x):
            ax.axvline(x, ymax=1 - picture.room, linestyle="--", linewidth=1.2, **style)
        case pic.Cells(x, y, levels):
            from matplotlib.colors import LinearSegmentedColormap

            shades = LinearSegmentedColormap.from_list("contrast", CELLS)
            style = {"cmap": shades, "vmin": 0, "vmax": pic.SHADES, "zorder": level}
            ax.pcolormesh(x, y, np.ma.masked_less_equal(levels, 0), rasterized=True, **style)
            ax.grid(visible=False, axis="y")
        case pic.Text():
            right, side = (-5, "right") if layer.ends else (5, "left")
            _write(ax, layer, right, 0, ha=side, zorder=level)


def _add_labels(ax: Any, labels: list[pic.Label]) -> None:
    """Write labels where there is room for them."""
    box, points = ax.get_window_extent(), 72 / ax.figure.figure.dpi

    def at(x: float, y: float) -> tuple[float, float]:
        right, up = (ax.transData.transform((x, y)) - [box.x0, box.y0]) * points
        return float(right), float(up)

    for label, x, y in pic.placed(labels, at, box.width * points, LABEL_SIZE):
        right, up = at(label.x, label.y)
        color = QUIET if label.color == "muted" else COLOR[label.color]
        weight = "bold" if label.strong else "normal"
        _write(ax, label, x - right, y - up, ha="center", zorder=6, color=color, fontweight=weight)


def _write(ax: Any, words: pic.Text | pic.Label, right: float, up: float, **style: Any) -> None:
    """Write words beside their point, with a white outline, so that they stand out."""
    from matplotlib.patheffects import withStroke

    ax.annotate(
        words.text, (words.x, words.y), xytext=(right, up), textcoords="offset points",
        va="center", fontsize=LABEL_SIZE,
        path_effects=[withStroke(linewidth=2.5, foreground="white")], **style,
    )  # fmt: skip
