"""Curves and dots with their spread, and estimates against the truth."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.plots._axes import few_ticks
from perpend.plots._style import (
    COLORS,
    MARKERS,
    MUTED,
    RIGHT,
    WRONG,
    shared_legend,
    small_multiples,
)

LABEL_GAP = 0.055  # least distance of two direct labels, as a share of the panel's height


def curves(
    panels: Mapping[str, Mapping[str, tuple[Array, ...]]],
    *,
    xlabel: str,
    ylabel: str,
    log_x: bool = False,
    log_y: bool = False,
    xlim: tuple[float, float] | None = None,
    ylim: tuple[float, float] | None = None,
    levels: Mapping[str, float] | None = None,
    markers: bool = True,
    columns: int | None = None,
    panel: tuple[float, float] | None = None,
) -> Any:
    """Draw lines, with their names at their ends, or in a legend for several panels.

    Parameters
    ----------
    panels : dict
        Title ("" for none) -> {name of the line: (x, y) or (x, y, low, high)}. The band from low
        to high is shaded. Lines of equal names have equal colours in all panels.
    log_x, log_y : bool
        Logarithmic axes; values <= 0 are left out there.
    levels : dict, optional
        Name -> y: dashed lines across all panels, such as a published number.
    markers : bool
        Whether to mark the points; use False for lines of hundreds of points.
    panel : pair of float, optional
        Width and height of a panel in inches.
    """
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    direct = len(panels) == 1
    size = panel or ((6.4, 3.9) if direct else (3.6, 3.2))
    options: Any = {"xlabel": xlabel, "ylabel": ylabel, "panel": size, "sharey": True}
    with small_multiples(panels, columns, **options) as (drawing, axes, pairs):
        for ax, lines in pairs:
            ax.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
            for name, values in lines.items():
                _line(ax, names.index(name), name, values, log_y=log_y, markers=markers)
            if xlim:
                ax.set_xlim(xlim)
            if log_x:
                few_ticks(ax.xaxis)
            if ylim:
                ax.set_ylim(ylim)
            for name, level in (levels or {}).items():
                ax.axhline(level, color=MUTED, linestyle="--", linewidth=1.2, zorder=1)
                ax.annotate(
                    name, (0, level), xycoords=("axes fraction", "data"), xytext=(3, 2),
                    textcoords="offset points", fontsize=8, color="#555555",
                )  # fmt: skip
        if direct and len(names) > 1:
            _label_ends(axes.flat[0], panels)
        elif len(names) > 1:
            shared_legend(drawing, axes, "upper", min(len(names), 2 + axes.shape[1]), names)
    return drawing


def _line(
    ax: Any, i: int, name: str, values: tuple[Array, ...], *, log_y: bool, markers: bool
) -> None:
    x, y, *band = (np.asarray(value, dtype=float) for value in values)
    color, marker = COLORS[i % len(COLORS)], MARKERS[i % len(MARKERS)] if markers else None
    style = ("-", "--", ":")[i // len(COLORS) % 3]
    if log_y:
        y = np.where(y > 0, y, np.nan)
        band = [np.where(edge > 0, edge, np.nan) for edge in band]
    ax.plot(x, y, style, color=color, marker=marker, label=name)
    if band:
        ax.fill_between(x, *band, color=color, alpha=0.18, linewidth=0)


def _label_ends(ax: Any, panels: Mapping[str, Mapping[str, tuple[Array, ...]]]) -> None:
    """Write each line's name to the right of the axes, at the height of its end if there is room.

    Names that would overlap are moved apart, in the order of the line ends.
    """
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()  # also fixes the scales
    ends = {}
    for line in ax.get_lines():
        x, y = line.get_data()
        seen = (x >= left) & (x <= right) & (y >= bottom) & (y <= top)
        if line.get_label() in next(iter(panels.values())) and seen.any():
            last = np.flatnonzero(seen)[-1]
            place = ax.transData.transform((x[last], y[last]))
            ends[line] = ax.transAxes.inverted().transform(place)
    order = sorted(ends, key=lambda line: ends[line][1])
    heights = _apart([float(ends[line][1]) for line in order])
    for line, height in zip(order, heights, strict=True):
        color = line.get_color()
        ax.annotate(
            line.get_label(), xy=tuple(ends[line]), xycoords="axes fraction",
            xytext=(1.04, height), textcoords="axes fraction", color=color, va="center",
            fontsize=9, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6, "alpha": 0.6,
                        "shrinkA": 1, "shrinkB": 2},
        )  # fmt: skip


def _apart(heights: list[float]) -> list[float]:
    """Move increasing heights apart, at least LABEL_GAP from one another, with the least shift.

    >>> [round(h, 2) for h in _apart([0.5, 0.5, 0.9])]
    [0.47, 0.53, 0.9]
    """
    groups: list[tuple[float, int]] = []  # middle and number of those that touch
    for height in heights:
        middle, n = height, 1
        while groups and middle - groups[-1][0] < (n + groups[-1][1]) / 2 * LABEL_GAP:
            other, m = groups.pop()
            middle, n = (middle * n + other * m) / (n + m), n + m
        groups.append((middle, n))
    return [middle + (k - (n - 1) / 2) * LABEL_GAP for middle, n in groups for k in range(n)]


def estimates_against_truth(
    panels: Mapping[str, tuple[Array, Array]],
    *,
    xlabel: str = "true codimension",
    ylabel: str = "estimated codimension",
    columns: int | None = None,
) -> Any:
    """Draw estimated over true numbers, one panel for each method.

    A dot's area is the share of the trials at its true value that gave this estimate; dots on the
    diagonal are right.

    Parameters
    ----------
    panels : dict
        Method -> (true values, estimates), one pair of whole numbers for each trial; an estimate
        that is NaN is counted as wrong and not drawn.
    """
    options: Any = {"panel": (3.0, 3.2), "sharex": True, "sharey": True}
    options |= {"xlabel": xlabel, "ylabel": ylabel}
    with small_multiples(panels, columns, **options) as (drawing, _, pairs):
        every = np.concatenate([values for both in panels.values() for values in both], dtype=float)
        low, high = np.nanmin(every), np.nanmax(every)
        margin = 0.06 * max(high - low, 1.0)
        for ax, both in pairs:
            truth, estimate = (np.asarray(values, dtype=float) for values in both)
            ax.axline((low, low), slope=1, color=MUTED, linewidth=1, zorder=1)
            seen = Counter(zip(truth.tolist(), estimate.tolist(), strict=True))
            trials = Counter(truth.tolist())
            x, y = np.array(list(seen)).T
            share = np.array([n / trials[true] for (true, _), n in seen.items()])
            colors = np.where(x == y, RIGHT, WRONG)
            ax.scatter(x, y, s=70 * share, c=colors, alpha=0.85, linewidths=0, zorder=2)
            right = int(np.sum(truth == estimate))
            ax.set(title=f"{ax.get_title()}\n{right} of {truth.size} right", aspect="equal")
            ax.set(xlim=(low - margin, high + margin), ylim=(low - margin, high + margin))
            for axis in (ax.xaxis, ax.yaxis):
                axis.get_major_locator().set_params(integer=True)
    return drawing


def dots(
    panels: Mapping[str, Mapping[str, Array]],
    *,
    xlabel: str,
    highlight: str,
    xlim: tuple[float, float] | None = None,
    columns: int | None = None,
    width: float = 3.1,
) -> Any:
    """Draw a line for each name: its values as small dots, their mean as a large one.

    Parameters
    ----------
    panels : dict
        Title -> {name: values}; NaN is left out. Every panel has all names, in the order of their
        first appearance.
    highlight : str
        The name with a different colour.
    width : float
        Of a panel, in inches; names take their part of the first one.
    """
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    size = (width, 0.26 * len(names) + 0.8)
    options: dict[str, Any] = {"panel": size, "sharex": True, "sharey": True}
    with small_multiples(panels, columns, xlabel=xlabel, **options) as (drawing, _, pairs):
        for ax, lines in pairs:
            for y, name in enumerate(names):
                values = np.asarray(lines.get(name, []), dtype=float)
                values = values[np.isfinite(values)]
                color = WRONG if name == highlight else RIGHT
                ax.scatter(values, np.full(len(values), y), s=9, color=MUTED, linewidths=0)
                if len(values):
                    ax.scatter([values.mean()], [y], s=46, color=color, zorder=3)
            ax.set_yticks(range(len(names)), names)
            ax.set_ylim(len(names) - 0.5, -0.5)  # the first name on top
            if xlim:
                ax.set_xlim(xlim)
    return drawing
