"""Pictures made of cells: success maps on one colour scale, and images side by side."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from perpend._deprecation import renamed_attribute
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.plots._display import Display
from perpend.plots._style import (
    COLOR_MAP,
    COLORS,
    MISSING_COLOR,
    shared_legend,
    small_multiples,
    without_axes,
)
from perpend.plots._words import count

RECOVERED = 1e-3  # sine of the largest angle, as in the experiments
TOLERATED = 0.5  # share of the trials that must be recovered


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
    panel: tuple[float, float] = (3.5, 3.2),
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
    panel : pair of float
        Width and height of a panel in inches.
    """
    options: Any = {"panel": panel, "sharex": True, "sharey": True}
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
            without_axes(ax)
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


@dataclass(eq=False, repr=False)
class PhaseTransitionDisplay(Display):
    """The share of trials recovered, over the numbers of inliers and outliers.

    Examples
    --------
    >>> from perpend.plots import PhaseTransitionDisplay
    >>> display = PhaseTransitionDisplay.from_trials(
    ...     inliers=[50, 50, 100, 100], outliers=[100, 100, 100, 100], recovered=[0, 1, 1, 1]
    ... )
    >>> display.share
    array([[0.5, 1. ]])
    """

    inliers: Array  # (n,) increasing: the middles of the columns of cells
    outliers: Array  # (m,) increasing: the middles of the rows of cells
    share: Array  # (m, n) share of the trials recovered; NaN where there was none
    _: KW_ONLY
    n_trials: int | None = None  # in all cells together
    title: str = ""  # of the picture

    def __post_init__(self) -> None:
        self.inliers, self.outliers, self.share = (
            np.asarray(values, dtype=float) for values in (self.inliers, self.outliers, self.share)
        )
        if self.share.shape != (len(self.outliers), len(self.inliers)):
            raise InputError(
                f"share has shape {self.share.shape}; expected {len(self.outliers)} rows "
                f"(outliers) and {len(self.inliers)} columns (inliers)."
            )

    @classmethod
    def from_trials(
        cls, inliers: Array, outliers: Array, recovered: Array, *, title: str = "", ax: Any = None
    ) -> Self:
        """Draw single trials.

        Parameters
        ----------
        inliers, outliers, recovered : arrays of shape (n_trials,)
            Of each trial its numbers of inliers and outliers, and whether it was recovered.
        """
        xs, column = np.unique(np.asarray(inliers), return_inverse=True)
        ys, row = np.unique(np.asarray(outliers), return_inverse=True)
        total, hits = np.zeros((len(ys), len(xs))), np.zeros((len(ys), len(xs)))
        np.add.at(total, (row, column), 1)
        np.add.at(hits, (row, column), np.asarray(recovered, dtype=float))
        share = np.divide(hits, total, where=total > 0, out=np.full(hits.shape, np.nan))
        return cls(xs, ys, share, n_trials=int(total.sum()), title=title).plot(ax)

    @classmethod
    def from_table(cls, rows: Iterable[Mapping[str, Any]], *, method: str, ax: Any = None) -> Self:
        """Draw one method of the stored table of ``perpend reproduce phase-transition``.

        Parameters
        ----------
        rows : iterable of dict
            Rows of the table ``trials``, for instance by `csv.DictReader` from ``trials.csv``; the
            columns N, M, method and error are used. A trial is recovered if the error, the sine of
            the largest angle, is below 0.001.
        method : str
            One of the methods in the table.
        """
        rows = list(rows)
        chosen = [row for row in rows if row["method"] == method]
        if not chosen:
            known = ", ".join(sorted({str(row["method"]) for row in rows})) or "none"
            raise InputError(f"method={method!r} is not in the table, which has: {known}.")
        N, M, error = (np.array([float(row[key]) for row in chosen]) for key in ("N", "M", "error"))
        return cls.from_trials(N, M, error < RECOVERED, title=method, ax=ax)

    @property
    def n_tolerated(self) -> Array:
        """For each column, the number of cells, from the fewest outliers on, with half recovered.

        If it is not zero, ``outliers[n_tolerated - 1]`` is how many outliers the method tolerates.
        """
        good = np.logical_and.accumulate(np.nan_to_num(self.share) >= TOLERATED, axis=0)
        return np.asarray(good.sum(axis=0))

    n_borne = renamed_attribute("PhaseTransitionDisplay", "n_borne", "n_tolerated", until="0.4")

    @property
    def description(self) -> str:
        """The picture in words."""
        cells = int(np.sum(np.isfinite(self.share)))
        good = int(np.sum(np.nan_to_num(self.share) >= TOLERATED))
        trials = "" if self.n_trials is None else f" of {count(self.n_trials)} trials"
        name = f"{self.title}: " if self.title else ""
        return (
            f"{name}Map of the share{trials} recovered, over {len(self.inliers)} numbers of "
            f"inliers and {len(self.outliers)} of outliers. In {good} of {cells} cells at least "
            "half are."
        )

    def _draw(self, ax: Any) -> None:
        xs, ys = self.inliers.tolist(), self.outliers.tolist()
        mesh = draw_cells(ax, self.share, xs, ys)
        ax.figure.colorbar(mesh, ax=ax, label="share of trials recovered", pad=0.02)
        most = self.n_tolerated
        title = [self.title] if self.title else []
        if most.any():
            steps = {"values": cell_edges(ys)[most], "edges": cell_edges(xs), "baseline": None}
            for color, width in (("white", 4.0), (COLORS[1], 1.8)):  # visible on dark and on light
                ax.stairs(**steps, color=color, linewidth=width)
            title.append("below the line at least half are recovered")
        ax.set(title="\n".join(title), xlabel="number of inliers", ylabel="number of outliers")
