"""How many rows are asked first, where there are many.

Solving takes some dozen passes over the rows; confirming takes three. A sample that is sure that
what it sees is no accident says as much about the subspace as all rows do. One that is not is
replaced by a larger one, up to all rows. Among many features, a few rows already show a subspace of
low dimension, and the spectra of all features are then left to confirming.
"""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from perpend.rows import RowSource
from perpend.solvers.loop import Callback
from perpend.structure.answer import Answer, by_all_rows
from perpend.structure.proposals import STANDS_OUT, largest_by_chance, room

SAMPLE_ROWS = 4096  # rows in the first sample,
SAMPLE_ROWS_PER_FEATURE = 24  # or so many for each feature, if that is more
WORTH_IT = 4  # times as many rows as in the sample there must be
GROWTH = 4  # the next sample, in units of the last
LOW_DIMENSION_ROWS = 256  # in which a subspace of low dimension among many features stands out


class Look(NamedTuple):
    """How a sample is asked."""

    size: int
    search: Callable[[RowSource], Answer | None]
    for_all: bool = True  # whether the answer stands even where all rows may show more


def by_sample(
    rows: RowSource, look: Look, rng: np.random.Generator, callback: Callback | None = None
) -> tuple[Answer, RowSource] | None:
    """Return the answer of all rows by way of a sample, and the sample, if more would not help."""
    chosen = rng.choice(rows.shape[0], look.size, replace=False, shuffle=False)
    sample = rows.subset(np.sort(chosen))
    found = look.search(sample) if sample.total_weight > 0 else None
    # Few rows can't show a thin subspace: "there is none" is for all rows to say.
    if found is None or found.decision is None or not found.decision.facts.is_significant:
        return None
    if not look.for_all and not found.sure:
        return None
    found = by_all_rows(rows, found, look.size, callback)
    if not look.for_all and (not found.sure or _others_stand_out(found, rows)):
        return None
    return found, sample


def _others_stand_out(found: Answer, rows: RowSource) -> bool:
    """Say whether a subspace may stand out of the rows that are not on the found one.

    Beside the found dimensions, their second moments are those of the outliers and of the inliers'
    noise.
    """
    fit, span = found.fit, found.span
    assert fit is not None
    n_rows, total = rows.shape[0], float(np.sum(span.variances))
    space, n_inliers = room(span, n_rows), fit.groups.share * n_rows
    dimension = span.rank - fit.V.shape[1]
    largest = float(span.variances[-1 - dimension]) / total * n_rows
    noise = fit.groups.scale**2 * span.rank / (total / rows.total_weight)  # of the squared norm
    by_chance = largest_by_chance(n_rows - n_inliers, space)
    return largest > STANDS_OUT * (by_chance + noise * largest_by_chance(n_inliers, space))


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
