"""What maps of recovery share: when a cell counts as recovered, and when a method falls behind."""

from perpend._typing import Array

OFTEN = 0.9  # of the trials: a cell counts as recovered
SIGNIFICANT = 0.05  # one-sided, Fisher's exact test
TEST = {"often_share": OFTEN, "significant": SIGNIFICANT}  # for the pages


def falls_behind(own: Array, other: Array) -> bool:
    """Whether `other` recovers often and `own` in clearly fewer trials (n,) of the same cell."""
    from scipy import stats

    counts = [[other.sum(), (~other).sum()], [own.sum(), (~own).sum()]]
    chance = stats.fisher_exact(counts, alternative="greater").pvalue
    return bool(other.mean() >= OFTEN and chance < SIGNIFICANT)
