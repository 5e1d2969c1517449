"""Reliability diagrams: whether estimates with a confidence of 90 % are right 9 times out of 10."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.plots._display import Display
from perpend.plots._style import MISSING_COLOR, MUTED, RIGHT, shared_legend, small_multiples
from perpend.plots._words import count, percent
from perpend.rows.kinds import to_numpy

EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0)
TENTHS = tuple(k / 10 for k in range(11))
LEVEL = 0.95  # of the intervals


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    """The share of right estimates at each confidence.

    Bins are drawn with equal widths, as most confidences are near one. A grey box spans the
    confidences of the bin: a calibrated confidence has its dot inside, one that is too low has it
    above. Bars are exact (Clopper-Pearson) 95 % intervals. The number of estimates is below.

    Examples
    --------
    >>> from perpend.plots import ReliabilityDisplay
    >>> display = ReliabilityDisplay.from_predictions(
    ...     [False, True, True], [0.1, 0.5, 1.0], edges=(0, 0.5, 1)
    ... )
    >>> display.n, display.hits
    (array([1, 2]), array([0, 2]))
    """

    edges: Sequence[float]  # from 0 to 1; bins hold their lower edge, the last its upper one, too
    n: Array  # (len(edges) - 1,) estimates in each bin
    hits: Array  # (len(edges) - 1,) how many of them are right
    _: KW_ONLY
    sure: float | None = None  # one of the edges, marked: from it on an estimate counts as sure
    xlabel: str = "confidence"  # of the horizontal axis
    ylabel: str = "share of right estimates"  # of the vertical axis

    size = (5.4, 4.2)

    def __post_init__(self) -> None:
        self.edges, self.n, self.hits = tuple(self.edges), np.asarray(self.n), np.asarray(self.hits)
        if self.sure is not None and self.sure not in self.edges:
            raise InputError(f"sure={self.sure} is not one of the edges {self.edges}.")

    @classmethod
    def from_predictions(
        cls,
        right: Array,
        confidence: Array,
        *,
        edges: Sequence[float] = EDGES,
        sure: float | None = None,
        ax: Any = None,
        **names: str,
    ) -> Self:
        """Draw estimates for which the truth is known.

        Parameters
        ----------
        right : array of shape (n_estimates,)
            Whether each estimate is right.
        confidence : array of shape (n_estimates,)
            In [0, 1].
        edges, sure :
            As above.
        **names
            `xlabel` and `ylabel`.
        """
        return cls._counted(right, confidence, edges, sure=sure, **names).plot(ax)

    @classmethod
    def from_estimator(cls, model: Any, X: Array, y: Array, *, ax: Any = None) -> Self:
        """Draw the outlier probabilities of a fitted model against the truth.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            True labels: +1 for inliers, -1 for outliers.
        """
        check_is_fitted(model)
        names: Any = {"xlabel": "outlier probability", "ylabel": "share of outliers"}
        probability = to_numpy(model.outlier_probability(X))
        return cls.from_predictions(np.asarray(y) == -1, probability, edges=TENTHS, ax=ax, **names)

    @classmethod
    def _counted(
        cls, right: Array, confidence: Array, edges: Sequence[float], **options: Any
    ) -> Self:
        confidence = np.asarray(confidence, dtype=float)
        n, _ = np.histogram(confidence, edges)
        hits, _ = np.histogram(confidence[np.asarray(right, dtype=bool)], edges)
        return cls(edges, n, hits, **options)

    @property
    def description(self) -> str:
        """The picture in words."""
        n, hits = int(self.n.sum()), int(self.hits.sum())
        text = (
            f"Reliability diagram of {count(n)} estimates: {self.ylabel} over {self.xlabel}. "
            f"In all, it is {percent(hits, n)}"
        )
        if self.sure is not None:
            first = self.edges.index(self.sure)
            high, right = int(self.n[first:].sum()), int(self.hits[first:].sum())
            text += f"; from {self.sure:g} on, {percent(right, high)} of {count(high)}"
        return f"{text}."

    def _draw(self, ax: Any) -> None:
        self._draw_panel(ax)
        ax.set(xlabel=f"{self.xlabel} (number below)", ylabel=self.ylabel)
        ax.set_ylim(0, 1.3)
        ax.set_yticks(np.linspace(0, 1, 6))
        ax.legend(loc="upper left")

    def _draw_panel(self, ax: Any) -> None:
        """Draw everything but labels and legend, which several panels share."""
        from scipy import stats

        low, high = np.asarray(self.edges[:-1]), np.asarray(self.edges[1:])
        places = np.arange(len(low))
        ax.bar(
            places, high - low, bottom=low, width=1.0, color=MISSING_COLOR, linewidth=0,
            label=f"share expected from the {self.xlabel}",
        )  # fmt: skip
        if self.sure is not None:
            border = self.edges.index(self.sure) - 0.5
            ax.vlines(border, 0, 1, color=MUTED, linestyle="--", linewidth=1.2)
            ax.annotate(
                f"sure from {self.sure:g} on", (border, 0.3), xycoords=("data", "axes fraction"),
                xytext=(3, 0), textcoords="offset points", rotation=90, va="center", fontsize=8,
                color="#555555",
            )  # fmt: skip
        seen = self.n > 0
        share = self.hits[seen] / self.n[seen]
        pairs = zip(self.hits[seen], self.n[seen], strict=True)
        tests = [stats.binomtest(int(hits), int(n)) for hits, n in pairs]
        ends = np.reshape([test.proportion_ci(LEVEL, method="exact") for test in tests], (-1, 2))
        ax.errorbar(
            places[seen], share, np.abs(ends.T - share), fmt="o", color=RIGHT, capsize=3,
            linewidth=1.4, label=f"{self.ylabel}, with 95 % interval", clip_on=False,
        )  # fmt: skip
        names = [f"{a:g}–{b:g}\n({k})" for a, b, k in zip(low, high, self.n, strict=True)]
        ax.set_xticks(places, names, fontsize=8)
        ax.set(xlim=(-0.5, len(low) - 0.5), ylim=(0, 1.02))
        ax.grid(visible=False, axis="x")


def reliability(
    panels: Mapping[str, tuple[Array, Array]],
    *,
    edges: Sequence[float] = EDGES,
    sure: float | None = None,
    columns: int | None = None,
) -> Any:
    """Draw several reliability diagrams side by side, each as `ReliabilityDisplay` does.

    Parameters
    ----------
    panels : dict
        Title -> (confidences in [0, 1], whether each estimate is right).
    edges, sure :
        As in `ReliabilityDisplay`.
    """
    names = {"xlabel": "confidence (number of estimates)", "ylabel": "share of right estimates"}
    options: dict[str, Any] = {"panel": (5.4, 4.0), "sharey": True}
    with small_multiples(panels, columns, **names, **options) as (drawing, axes, pairs):
        for ax, (confidence, right) in pairs:
            ReliabilityDisplay._counted(right, confidence, edges, sure=sure)._draw_panel(ax)
        shared_legend(drawing, axes, "upper", 2, ())
    return drawing
