"""How many rows are asked first, where there are many.

Solving takes some dozen passes over the rows; confirming takes three. A sample that is sure says as
much about the subspace as all rows do. One that is not, because the inliers among so few rows are
too few, is replaced by a larger one, up to all rows.
"""

from collections.abc import Iterator
from typing import Literal

SAMPLE_ROWS = 4096  # rows in the first sample,
SAMPLE_ROWS_PER_FEATURE = 24  # or so many for each feature, if that is more
WORTH_IT = 4  # times as many rows as in the sample there must be
GROWTH = 4  # the next sample, in units of the last


def sample_sizes(
    sample_size: int | Literal["auto"] | None, n_rows: int, n_features: int
) -> Iterator[int]:
    """Yield the sizes of the samples to try, one after the other, before all rows.

    >>> list(sample_sizes("auto", 100_000, 20))
    [4096, 16384]
    >>> list(sample_sizes("auto", 10_000, 20)), list(sample_sizes(None, 10**9, 20))
    ([], [])
    >>> list(sample_sizes(5000, 10_000, 20))
    [5000]
    """
    if sample_size is None:
        return
    worth_it = 1
    if sample_size == "auto":
        sample_size = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_FEATURE * n_features)
        worth_it = WORTH_IT
    sample_size = int(sample_size)  # a small NumPy integer would overflow
    while worth_it * sample_size < n_rows:
        yield sample_size
        sample_size *= GROWTH
