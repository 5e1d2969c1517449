"""How many outliers a method tolerates: a map of the share recovered."""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from perpend._deprecation import renamed_attribute
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.plots._display import Display
from perpend.plots._maps import cell_edges, draw_cells
from perpend.plots._style import COLORS
from perpend.plots._words import count

RECOVERED = 1e-3  # sine of the largest angle, as in the experiments
TOLERATED = 0.5  # share of the trials that must be recovered


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
