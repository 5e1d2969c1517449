"""What maps of recovery share: when a cell counts as recovered, and when a method falls behind."""

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Results
from perpend.experiments._text import percent

OFTEN = 0.9  # of the trials: a cell counts as recovered
SIGNIFICANT = 0.05  # one-sided, Fisher's exact test


def falls_behind(own: Array, other: Array) -> bool:
    """Whether `other` recovers often and `own` in clearly fewer trials (n,) of the same cell."""
    from scipy import stats

    counts = [[other.sum(), (~other).sum()], [own.sum(), (~own).sum()]]
    chance = stats.fisher_exact(counts, alternative="greater").pvalue
    return bool(other.mean() >= OFTEN and chance < SIGNIFICANT)


def method_rows(
    results: Results, often: dict[str, int], n_cells: int, limit: float
) -> list[list[str]]:
    """Return a row for each method: cells and trials recovered, and the median time.

    `often` has the number of cells that a method recovers, and `limit` is the largest error of a
    recovered trial.
    """
    return [
        [
            name,
            f"{count} of {n_cells}",
            percent(float(np.mean(results.column("trials", "error", method=name) < limit))),
            f"{np.median(results.column('trials', 'seconds', method=name)):.2f} s",
        ]
        for name, count in often.items()
    ]
