"""Drawing that several sections share, in the house style of `perpend.plots`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from perpend.plots import COLORS, figure
from perpend.plots._style import MUTED

INK = "#555555"


class Dots(NamedTuple):
    """One value for each line of a dot plot."""

    values: Sequence[float]
    color: str = COLORS[0]
    marker: str = "o"
    filled: bool = True


def dot_plot(ax: Any, names: Sequence[str], series: Mapping[str, Dots]) -> None:
    """Draw values from left to right, one line for each name, the first on top."""
    places = range(len(names))
    for label, dots in series.items():
        face = dots.color if dots.filled else "white"
        ax.plot(
            dots.values, places, dots.marker, color=dots.color, markerfacecolor=face,
            markersize=6.5, markeredgewidth=1.4, label=label,
        )  # fmt: skip
    name_lines(ax, names)


def dot_panels(
    panels: Mapping[str, Mapping[str, Dots]],
    names: Sequence[str],
    *,
    xlabel: str,
    lines: Mapping[str, float],
    width: float = 6.4,
    ticks: Iterable[float] = (),
    **options: Any,
) -> Any:
    """Draw dot plots side by side, with the same names, lines and axes, and one legend above.

    `ticks` are those of a logarithmic axis; `options` are properties of the axes.
    """
    size = (width / len(panels), 0.28 * len(names) + 1.0)
    with figure(1, len(panels), panel=size, sharex=True, sharey=True) as (drawing, axes):
        for ax, (title, series) in zip(axes.flat, panels.items(), strict=True):
            dot_plot(ax, names, series)
            for text, value in lines.items():
                upright_line(ax, value, text)
            ax.set_title(title, pad=16)
        if ticks:
            axes[0, 0].set_xscale("log")
            whole_ticks(axes[0, 0].xaxis, ticks)
        axes[0, 0].set(**options)
        drawing.supxlabel(xlabel, fontsize=10)
        handles, labels = axes.flat[-1].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return drawing


def name_lines(ax: Any, names: Sequence[str]) -> None:
    """Write names on the vertical axis, the first on top."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(visible=False, axis="x")


def upright_line(ax: Any, value: float, text: str, within: tuple[float, float] = (0, 1)) -> None:
    """Draw a thin upright line with its name at the top; `within` is a share of height."""
    ax.axvline(value, *within, color=MUTED, linestyle="--", linewidth=1.1, zorder=1)
    ax.annotate(
        text, (value, within[1]), xycoords=("data", "axes fraction"), xytext=(0, 2),
        textcoords="offset points", ha="center", va="bottom", fontsize=8, color=INK,
    )  # fmt: skip


def level_bars(
    ax: Any, values: Mapping[str, float], texts: Sequence[str], colors: Sequence[str]
) -> None:
    """Draw a level bar for each name, the first on top, with a text at its end."""
    for i, (value, text, color) in enumerate(zip(values.values(), texts, colors, strict=True)):
        ax.barh(i, value, 0.5, color=color)
        beside(ax, value, i, text, color)
    name_lines(ax, list(values))


def level(ax: Any, value: float, text: str, x: tuple[float, float]) -> None:
    """Draw a thin level line from x to x, with its name below its right end."""
    ax.plot(x, [value, value], color=MUTED, linestyle="--", linewidth=1.1, zorder=1)
    ax.annotate(
        text, (x[1], value), xytext=(0, -3), textcoords="offset points",
        ha="right", va="top", fontsize=8, color=INK,
    )  # fmt: skip


def beside(ax: Any, x: float, y: float, text: str, color: str = INK) -> None:
    """Write a text to the right of a point, on white, so that lines pass behind it."""
    ax.annotate(
        text, (x, y), xytext=(8, 0), textcoords="offset points", va="center", fontsize=8,
        color=color, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )  # fmt: skip


def above(ax: Any, x: float, y: float, text: str, color: str = INK) -> None:
    """Write a text above a point, on white."""
    ax.annotate(
        text, (x, y), xytext=(0, 7), textcoords="offset points", ha="center", va="bottom",
        fontsize=8, color=color, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )  # fmt: skip


def whole_ticks(axis: Any, values: Iterable[float], apart: float = 1.4) -> None:
    """Put the ticks of a logarithmic axis on measured sizes, as plain numbers with room between."""
    shown: list[float] = []
    for value in sorted(values):
        if not shown or value >= apart * shown[-1]:
            shown.append(value)
    axis.set_ticks(shown, [short(value) for value in shown])
    axis.set_ticks([], minor=True)


def short(value: float) -> str:
    """Write a size briefly.

    >>> short(12), short(10_000), short(1_000_000)
    ('12', '10k', '1M')
    """
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"
