"""Dots for values of named things, one line each, with their spread."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.plots._style import MUTED, RIGHT, WRONG, small_multiples


def dots(
    panels: Mapping[str, Mapping[str, Array]],
    *,
    xlabel: str,
    highlight: str,
    xlim: tuple[float, float] | None = None,
    columns: int | None = None,
) -> Any:
    """Draw a line for each name: its values as small dots, their mean as a large one.

    Parameters
    ----------
    panels : dict
        Title -> {name: values}; NaN is left out. Every panel has all names, in the order of their
        first appearance.
    highlight : str
        The name with a different colour.
    """
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    size = (3.1, 0.26 * len(names) + 0.8)
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
