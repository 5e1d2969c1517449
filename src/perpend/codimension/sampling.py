"""How many rows are asked first, where there are many.

Solving takes some dozen passes over the rows; confirming takes three. A sample that is sure says as
much about the subspace as all rows do. One that is not, because the inliers among so few rows are
too few, is replaced by a larger one, up to all rows. Among many features, a few rows already show a
subspace of low dimension, and the spectra of all features are then left to confirming.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from perpend.codimension.by_scales import by_all_rows
from perpend.codimension.confirm import confirm
from perpend.codimension.found import Found
from perpend.codimension.low_dimension import others_stand_out
from perpend.rows import RowSource
from perpend.solvers.loop import Callback

SAMPLE_ROWS = 4096  # rows in the first sample,
SAMPLE_ROWS_PER_FEATURE = 24  # or so many for each feature, if that is more
WORTH_IT = 4  # times as many rows as in the sample there must be
GROWTH = 4  # the next sample, in units of the last
LOW_DIMENSION_ROWS = 256  # in which a subspace of low dimension among many features stands out


class Look(NamedTuple):
    """How a sample is asked."""

    size: int
    search: Callable[[RowSource], Found | None]
    for_all: bool = True  # whether a sure answer stands even where all rows may show more


def by_sample(
    rows: RowSource, look: Look, rng: np.random.Generator, callback: Callback | None = None
) -> tuple[Found, RowSource] | None:
    """Return the answer of all rows by way of a sample, and the sample, if both are sure."""
    chosen = rng.choice(rows.shape[0], look.size, replace=False, shuffle=False)
    sample = rows.subset(np.sort(chosen))
    found = look.search(sample) if sample.total_weight > 0 else None
    if found is None:
        return None
    if found.decision is not None and found.decision.facts.is_significant:
        confirmed = by_all_rows(rows, found, callback)
        return None if confirmed is None else (confirmed, sample)
    if not found.sure:
        return None
    # Few rows can't show a thin subspace: "there is none" is for all rows to say.
    if found.answer.normals.shape[1] == 0:
        return None
    found = confirm(rows, found, look.size, callback)
    if not found.sure or (not look.for_all and others_stand_out(found, rows)):
        return None
    return found, sample


def size_for_low_dimension(
    sample_size: int | Literal["auto"] | None, n_rows: int, n_features: int
) -> int | None:
    """Return how many rows to ask first for a subspace of low dimension, where that is worth it.

    What takes long are spectra, of as many features as there are, or as there are rows.

    >>> size_for_low_dimension("auto", 1000, 1024), size_for_low_dimension("auto", 10**6, 100)
    (256, None)
    """
    worth_it = min(n_rows, n_features) >= 2 * LOW_DIMENSION_ROWS
    return LOW_DIMENSION_ROWS if sample_size == "auto" and worth_it else None


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
