"""Is a confidence of 90 % right nine times out of ten: reliability diagrams."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.plots._style import MISSING, MUTED, RIGHT, figure, grid, hide_unused

EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0)
LEVEL = 0.95  # of the intervals


def reliability(
    panels: Mapping[str, tuple[Array, Array]],
    *,
    edges: Sequence[float] = EDGES,
    sure: float | None = None,
    xlabel: str = "confidence",
    ylabel: str = "share of right answers",
    columns: int | None = None,
) -> Any:
    """Draw the share of right answers at each confidence.

    Bins are drawn equally wide, because confidences crowd near one. A grey box spans the bin's own
    confidences: an honest confidence has its dot there, one that is too modest has it above. Bars
    are exact (Clopper and Pearson's) 95 % intervals, and the number of answers stands below.

    Parameters
    ----------
    panels : dict
        Title -> (confidences in [0, 1], whether each answer is right).
    edges : increasing sequence of float
        From 0 to 1. A bin holds its lower edge, the last one its upper edge as well.
    sure : float, optional
        One of the edges: a line marks from where on an answer counts as sure.
    xlabel, ylabel : str
    columns : int, optional
        Panels in a row.

    Returns
    -------
    matplotlib.figure.Figure
    """
    low, high = np.asarray(edges[:-1]), np.asarray(edges[1:])
    places = np.arange(len(low))
    shape = grid(len(panels), columns)
    with figure(*shape, panel=(5.4, 4.0), sharey=True) as (drawing, axes):
        for ax, (title, (confidence, right)) in zip(axes.flat, panels.items(), strict=False):
            n, hits = _counts(edges, confidence, right)
            ax.bar(
                places, high - low, bottom=low, width=1.0, color=MISSING, linewidth=0,
                label="share that the confidence claims",
            )  # fmt: skip
            if sure is not None:
                border = list(edges).index(sure) - 0.5
                ax.axvline(border, color=MUTED, linestyle="--", linewidth=1.2)
                ax.annotate(
                    f"sure from {sure:g} on", (border, 0.3), xycoords=("data", "axes fraction"),
                    xytext=(3, 0), textcoords="offset points", rotation=90, va="center",
                    fontsize=8, color="#555555",
                )  # fmt: skip
            seen = n > 0
            share = hits[seen] / n[seen]
            ends = np.array([_interval(*pair) for pair in zip(hits[seen], n[seen], strict=True)])
            ax.errorbar(
                places[seen], share, np.abs(ends.T - share), fmt="o", color=RIGHT, capsize=3,
                linewidth=1.4, label="answers that are right, with 95 % interval", clip_on=False,
            )  # fmt: skip
            names = [f"{a:g}–{b:g}\n({k})" for a, b, k in zip(low, high, n, strict=True)]
            ax.set_xticks(places, names, fontsize=8)
            ax.set(title=title, xlim=(-0.5, len(low) - 0.5), ylim=(0, 1.02))
            ax.grid(visible=False, axis="x")
        hide_unused(axes, len(panels))
        drawing.supxlabel(f"{xlabel} (number of answers)", fontsize=10)
        drawing.supylabel(ylabel, fontsize=10)
        handles, names = axes.flat[0].get_legend_handles_labels()
        drawing.legend(handles, names, loc="outside upper center", ncols=2)
    return drawing


def _counts(edges: Sequence[float], confidence: Array, right: Array) -> tuple[Array, Array]:
    """Return the number of answers and of right answers in each bin.

    >>> _counts((0, 0.5, 1), [0.1, 0.5, 1.0], [False, True, True])
    (array([1, 2]), array([0, 2]))
    """
    n, _ = np.histogram(confidence, edges)
    hits, _ = np.histogram(np.asarray(confidence)[np.asarray(right, dtype=bool)], edges)
    return n, hits


def _interval(hits: int, n: int) -> tuple[float, float]:
    from scipy import stats

    low, high = stats.binomtest(int(hits), int(n)).proportion_ci(LEVEL, method="exact")
    return float(low), float(high)
