"""Pictures made of cells: success maps on one colour scale, and images side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.plots._style import COLOR_MAP, COLORS, MISSING_COLOR, shared_legend, small_multiples


def heatmaps(
    panels: Mapping[str, Array],
    xs: Sequence[float],
    ys: Sequence[float],
    *,
    xlabel: str,
    ylabel: str,
    label: str,
    limits: tuple[float, float] = (0.0, 1.0),
    lines: Mapping[str, tuple[Array, Array]] | None = None,
    numbers: str | None = None,
    columns: int | None = None,
    cmap: str = COLOR_MAP,
) -> Any:
    """Draw several maps side by side on one colour scale.

    Parameters
    ----------
    panels : dict
        Title -> array of shape (len(ys), len(xs)); NaN cells are grey.
    xs, ys : increasing sequences of float
        The middle of each column and row of cells.
    label : str
        Of the colour bar.
    limits : pair of float
        The ends of the colour scale.
    lines : dict, optional
        Name -> (x, y): curves to draw over every panel, such as a theory's border.
    numbers : str, optional
        A format such as ``"{:.2f}"``: writes the value into each cell.
    """
    options: Any = {"panel": (3.5, 3.2), "sharex": True, "sharey": True}
    options |= {"xlabel": xlabel, "ylabel": ylabel}
    with small_multiples(panels, columns, **options) as (drawing, axes, pairs):
        mesh = None
        for ax, values in pairs:
            mesh = draw_cells(ax, values, xs, ys, limits=limits, cmap=cmap)
            if numbers:
                _write_numbers(mesh, values, xs, ys, numbers)
            for i, (name, (x, y)) in enumerate((lines or {}).items()):
                style = ("-", "--", ":", "-.")[i % 4]
                # White below the colour, so that the line is visible on dark and on light cells.
                ax.plot(x, y, color="white", linewidth=4, scalex=False, scaley=False)
                color = COLORS[1:][i % (len(COLORS) - 1)]
                ax.plot(x, y, style, color=color, label=name, scalex=False, scaley=False)
        drawing.colorbar(mesh, ax=axes, label=label, shrink=0.95, pad=0.02, aspect=30)
        shared_legend(drawing, axes, "upper", 4, list(lines or ()))
    return drawing


def draw_cells(
    ax: Any,
    values: Array,
    xs: Sequence[float],
    ys: Sequence[float],
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    cmap: str = COLOR_MAP,
) -> Any:
    """Draw one map onto axes and return its mesh; NaN cells are grey."""
    mesh = ax.pcolormesh(
        cell_edges(xs), cell_edges(ys), np.asarray(values, dtype=float),
        cmap=cmap, vmin=limits[0], vmax=limits[1], rasterized=True,
    )  # fmt: skip
    ax.set(facecolor=MISSING_COLOR)
    ax.grid(visible=False)
    for axis, middles in ((ax.xaxis, xs), (ax.yaxis, ys)):
        # On all cells, or on every second, third..., if there are many.
        shown = list(middles)[:: -(-len(middles) // 7)]
        axis.set_ticks(shown, [f"{middle:g}" for middle in shown])
    return mesh


def images(
    panels: Mapping[str, Array],
    *,
    columns: int | None = None,
    limits: tuple[float, float] | None = None,
    cmap: str = "gray",
    label: str | None = None,
    legend: Mapping[str, tuple[float, float, float]] | None = None,
) -> Any:
    """Draw images side by side, each below its title.

    Parameters
    ----------
    panels : dict
        Title -> array of shape (height, width), or (height, width, 3) with colours in [0, 1].
        Booleans become black and white; NaN pixels are light red.
    limits : pair of float, optional
        The values of black and white; by default each image's smallest and largest value.
    label : str, optional
        Of a colour bar for all images, which needs `limits`.
    legend : dict, optional
        Meaning -> colour.
    """
    import matplotlib as mpl
    from matplotlib.patches import Patch

    first = np.shape(next(iter(panels.values())))
    height = min(max(3.0 * first[0] / first[1], 1.2), 5.0)
    colors = mpl.colormaps[cmap].with_extremes(bad="#F2C9C0")
    with small_multiples(panels, columns, panel=(3.0, height + 0.35)) as (drawing, axes, pairs):
        shown = None
        for ax, values in pairs:
            image = np.asarray(values)
            low, high = (0, 1) if image.dtype == bool else limits or (None, None)
            shown = ax.imshow(
                image.astype(float), cmap=colors, vmin=low, vmax=high, interpolation="nearest"
            )
            ax.set(xticks=[], yticks=[])
            ax.grid(visible=False)
            ax.spines[:].set_visible(False)
        if label and limits:
            drawing.colorbar(shown, ax=axes, label=label, shrink=0.9, aspect=30)
        if legend:
            patches = [Patch(facecolor=color, label=name) for name, color in legend.items()]
            drawing.legend(handles=patches, loc="outside lower center", ncols=len(patches))
    return drawing


def cell_edges(middles: Sequence[float] | Array) -> Array:
    """Return the borders between cells, half way between their middles.

    >>> cell_edges([1, 2, 4])
    array([0.5, 1.5, 3. , 5. ])
    """
    m = np.asarray(middles, dtype=float)
    if len(m) == 1:
        return np.array([m[0] - 0.5, m[0] + 0.5])
    inner = (m[1:] + m[:-1]) / 2
    return np.concatenate([[m[0] - (inner[0] - m[0])], inner, [m[-1] + (m[-1] - inner[-1])]])


def _write_numbers(
    mesh: Any, values: Array, xs: Sequence[float], ys: Sequence[float], form: str
) -> None:
    for y, line in zip(ys, np.asarray(values, dtype=float), strict=True):
        for x, value in zip(xs, line, strict=True):
            if np.isfinite(value):
                # Dark on light cells, light on dark ones, by the brightness that the eye sees.
                r, g, b = mesh.cmap(mesh.norm(value))[:3]
                ink = "black" if 0.3 * r + 0.59 * g + 0.11 * b > 0.5 else "white"
                style = {"ha": "center", "va": "center", "fontsize": 8, "color": ink}
                mesh.axes.text(x, y, form.format(value), **style)
