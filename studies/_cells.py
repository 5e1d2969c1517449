"""What maps of recovery share: when a method falls behind another in a cell."""

from perpend._typing import Array
from perpend.experiments.phase_transition import OFTEN

SIGNIFICANT = 0.05  # one-sided, Fisher's exact test
TEST = {"often_share": OFTEN, "significant": SIGNIFICANT}  # for the pages


def falls_behind(own: Array, other: Array) -> bool:
    """Whether `other` recovers often and `own` in clearly fewer trials (n,) of the same cell."""
    from scipy import stats

    counts = [[other.sum(), (~other).sum()], [own.sum(), (~own).sum()]]
    chance = stats.fisher_exact(counts, alternative="greater").pvalue
    return bool(other.mean() >= OFTEN and chance < SIGNIFICANT)
