"""A subsample first, where there are many rows.

Solving takes some dozen passes over the rows; confirming takes three. A sample that is sure that
what it sees is no accident says as much about the subspace as all rows do. One that is not is
replaced by a larger one, up to all rows. Among many features, a few rows already show a subspace of
low dimension, and the spectra of all features are then left to confirming.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend.rows import RowSource
from perpend.solvers import Callback
from perpend.structure.estimate import Estimate, by_all_rows
from perpend.structure.ground import STANDS_OUT, largest_by_chance, room


class Subsample(NamedTuple):
    """The size of a subsample, and how it is searched."""

    size: int
    search: Callable[[RowSource], Estimate | None]
    for_all: bool = True  # whether it stands even where all rows may show more


def by_sample(
    rows: RowSource,
    subsample: Subsample,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> tuple[Estimate, RowSource] | None:
    """Return the estimate of all rows by way of a subsample, and that, if more would not help."""
    chosen = rng.choice(rows.shape[0], subsample.size, replace=False, shuffle=False)
    sample = rows.subset(np.sort(chosen))
    estimate = subsample.search(sample) if sample.total_weight > 0 else None
    # Few rows can't show a thin subspace: "there is none" is for all rows to say.
    if estimate is None or estimate.decision is None or estimate.fit is None:
        return None
    if not estimate.decision.facts.is_significant:
        return None
    if subsample.for_all or estimate.sure:
        estimate = by_all_rows(rows, estimate, subsample.size, callback)
        if estimate is not None and (subsample.for_all or _is_alone(estimate, rows)):
            return estimate, sample
    return None


def _is_alone(estimate: Estimate, rows: RowSource) -> bool:
    """Say whether it is sure, and the other rows can hide no further subspace.

    Beside the found dimensions, their second moments are those of the outliers and of the inliers'
    noise.
    """
    fit, span = estimate.fit, estimate.span
    assert fit is not None
    n_rows, total = rows.shape[0], float(np.sum(span.variances))
    space, n_inliers = room(span, n_rows), fit.groups.share * n_rows
    dimension = span.rank - fit.V.shape[1]
    largest = float(span.variances[-1 - dimension]) / total * n_rows
    noise = fit.groups.scale**2 * span.rank / (total / rows.total_weight)  # of the squared norm
    by_chance = largest_by_chance(n_rows - n_inliers, space)
    most = STANDS_OUT * (by_chance + noise * largest_by_chance(n_inliers, space))
    return estimate.sure and largest <= most
