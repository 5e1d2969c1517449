r"""Could this be an accident? What the rows say for a candidate subspace.

Any subspace of dimension d can be laid through d rows, so d rows on it say nothing. The evidence is
what the others say: with J the distance of a row, and the two-group model's densities,

.. math:: L = \sum_i \log\Bigl(1 - \pi + \pi\,\frac{p_\text{in}(J_i)}{p_\text{out}(J_i)}\Bigr)

over all rows but the d nearest, where rows that stand m times count once. The fit has c d free
parameters, and on n rows without any structure it gains up to about log(n / R) / 2 units of L for
each, as information criteria have it (R is the dimension of the rows' span). Measured maxima stay
well below that: the decision record on the confidence has the table.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.kernels import distances, heights, logarithmic_bins
from perpend.rows import RowSource
from perpend.solvers import (
    TwoGroups,
    label_threshold,
    outlier_law,
    outlier_misfit,
    scan_distances,
)

LUCK = 10.0  # a gain that rows without structure hardly ever reach, even without free parameters
LUCK_PER_PARAMETER = 0.75  # and this much more for each, beside the logarithm
ALL_ROWS = 0.98  # share of inliers from which on there is no other group
NOISE_MISFIT = 0.05  # between the shares of such rows within a distance, as seen and by the law
NOISE_CHANCE = 3.0  # times 1 / sqrt(n): by chance they differ by that in one case of 10^7
AS_NEAR = 0.95  # of the inliers are nearer: what is so near, in the units of the data, is one
UNEVEN = 1.1  # ratio of the longest row to the shortest from which on lengths differ
ENOUGH = 10_000  # rows to tell laws of noise apart by


class Certificate(NamedTuple):
    """How far the rows support a subspace."""

    n_distinct: float  # rows, without counting equal ones twice
    n_rows: int  # of these, nearer than the threshold
    n_free: int  # rows that any subspace of this dimension can be laid through
    gain: float  # L over the rows, without the n_free nearest
    needed: float  # the gain from which on an accident is the less likely explanation
    threshold: float  # the distance that separates inliers from outliers
    misfit: float  # of the outliers' distances to the law of directions without preference
    confidence: float  # that this is no accident
    is_noise: bool = True  # whether what keeps all rows off the subspace is noise
    too_short: float = 0.0  # share of the outliers that are as near as inliers, but shorter rows

    @property
    def support(self) -> float:
        """The gain beyond what accidents reach."""
        return self.gain - self.needed


def certify(
    rows: RowSource, V: Array, groups: TwoGroups, dimension: int, share: Array
) -> Certificate:
    """Weigh the rows for the subspace with normals V (D, c) and the given dimension.

    `share` says how distinct each row is.
    """
    J = row_distances(rows, V)
    counts = distinct_counts(J, groups, share)
    certificate = weigh_counts(counts, groups, rows.norms, V.shape[1], dimension)
    near = certificate.threshold >= J
    certificate = certificate._replace(n_rows=round(float(share[near].sum())))
    if groups.is_exact:
        return certificate  # exact inliers: nothing to ask about noise
    lengths = rows.gather(rows.lengths)
    is_noise = groups.share <= ALL_ROWS or _is_noise(J[near], lengths[near], V.shape[1])
    too_short = _share_too_short(J, lengths, near, V.shape[1], dimension)
    return certificate._replace(is_noise=is_noise, too_short=too_short)


def _is_noise(J: Array, lengths: Array, codimension: int) -> bool:
    """Say whether distances J (n,) follow the chi law of Gaussian noise.

    Noise may be alike in all rows as they were given, or in proportion to their lengths.
    """
    J = J.astype(float)
    misfit = min(_from_chi(J, codimension), _from_chi(J * lengths, codimension))
    return misfit <= _by_chance(len(J))


def _by_chance(n: int) -> float:
    """Return a misfit of n distances that says nothing yet.

    It is Kolmogorov's distance D, for which P(sqrt(n) D > t) is about 2 exp(-2 t^2).
    """
    return max(NOISE_MISFIT, NOISE_CHANCE / math.sqrt(max(n, 1)))


def _share_too_short(
    J: Array, lengths: Array, near: Array, codimension: int, dimension: int
) -> float:
    """Return the share of outliers that are inliers by their distance in the units of the data.

    Where noise is alike in all rows as they were given, it is large in proportion to short ones,
    and these look like outliers: rows around the origin, on a subspace through it. Short outliers
    are near by chance, too: unit rows without preferred direction have distances J with J^2 ~
    Beta(c/2, d/2). If a share p of them is near by that, of all far rows a share s + (1 - s) p is.
    Rows that would be near in any direction are shorter than the noise, and no such outliers.
    """
    some = slice(None, None, max(len(J) // ENOUGH, 1))
    J, lengths, near = J[some].astype(float), lengths[some].astype(float), near[some]
    far = ~near & (lengths > 0)
    if not np.any(far) or not np.any(near):
        return 0.0
    if np.max(lengths) <= UNEVEN * np.min(lengths[lengths > 0]):
        return 0.0
    absolute = J * lengths
    misfit = _from_chi(absolute[near], codimension)
    alike = misfit <= _by_chance(int(near.sum())) and misfit < _from_chi(J[near], codimension)
    if not alike:
        return 0.0
    limit = np.quantile(absolute[near], AS_NEAR)

    def law(distance: Array) -> Array:
        square = np.square(np.minimum(distance, 1.0))
        return special.betainc(codimension / 2, dimension / 2, square)

    out_of_reach = law(np.max(J[near]))
    reach = limit / lengths[far]
    by_chance = np.where(reach < 1, np.maximum(law(reach) - out_of_reach, 0.0), 0.0)
    chance = float(np.mean(by_chance) / max(1 - out_of_reach, np.finfo(float).tiny))
    as_near = float(np.mean(absolute[far] <= limit))
    return max(as_near - chance, 0.0) / max(1 - chance, np.finfo(float).tiny)


def _from_chi(distance: Array, codimension: int) -> float:
    """Return Kolmogorov's distance from the chi law with the same median."""
    n, half = len(distance), codimension / 2
    squares = np.sort(np.square(distance))
    middle = float(np.median(squares))
    if middle == 0:
        return 0.0
    law = special.gammainc(half, squares / middle * special.gammaincinv(half, 0.5))
    steps = np.arange(n + 1) / n
    return float(max(np.max(steps[1:] - law), np.max(law - steps[:-1])))


def row_distances(rows: RowSource, V: Array, U: Array | None = None) -> Array:
    """Return the distances (n,) of all rows to the complement of the orthonormal V, in memory.

    `U` is an orthonormal basis of that complement, if it is known.
    """
    kept = scan_distances(rows, V, U).kept
    assert kept is not None
    return rows.gather(kept)


def mapped_lengths(rows: RowSource, A: Array) -> Array:
    """Return ||A.T x|| (n,) of all rows for any A (D, m), in memory."""
    kept = rows.scan(distances, A, keep=True).kept
    assert kept is not None
    return rows.gather(kept)


def weigh_counts(
    counts: Array, groups: TwoGroups, norms: Array, codimension: int, dimension: int
) -> Certificate:
    """Weigh rows of which only the number in each bin of distances is known.

    `counts` says how many distinct rows are in each bin.
    """
    gain, needed = glance(counts, groups, codimension, dimension)
    law = outlier_law(groups.edges, norms, codimension, dimension)
    threshold = label_threshold(counts, groups.edges, law, groups.threshold)
    first = min(int(np.searchsorted(groups.edges, threshold, side="right")), len(law) - 1)
    return Certificate(
        n_distinct=float(counts.sum()),
        n_rows=round(float(counts[:first].sum())),
        n_free=dimension,
        gain=gain,
        needed=needed,
        threshold=threshold,
        misfit=outlier_misfit(counts, law, first),
        # Luck varies by a few units, and more with more parameters: the slope of the step.
        confidence=float(special.expit((gain - needed) / (3 + codimension * dimension / 6))),
    )


class Glance(NamedTuple):
    """The first two numbers of a certificate, without the rest."""

    gain: float
    needed: float

    @property
    def support(self) -> float:
        """The gain beyond what accidents reach."""
        return self.gain - self.needed


def glance(counts: Array, groups: TwoGroups, codimension: int, dimension: int) -> Glance:
    """Return what `weigh_counts` would say first."""
    # Leave out the nearest rows: what is left of each bin after they are taken away.
    left = np.diff(np.maximum(np.cumsum(counts) - dimension, 0.0), prepend=0.0)
    rows_per_dimension = float(counts.sum()) / (codimension + dimension)
    per_parameter = LUCK_PER_PARAMETER + math.log(max(rows_per_dimension, 1)) / 2
    return Glance(float(left @ groups.gain), LUCK + codimension * dimension * per_parameter)


def distinct_counts(J: Array, groups: TwoGroups, share: Array) -> Array:
    """Return how many distinct rows are in each bin of distances (m,)."""
    bins = logarithmic_bins(J, groups.edges)
    counts: Array = np.bincount(bins, share, minlength=len(groups.edges))
    return counts


class Distinct(NamedTuple):
    """Which rows are equal."""

    share: Array  # (n,) how much each row counts as evidence
    in_common: Array  # (n,) the weight of each row and of those that are equal to it
    part: Array  # (n,) of that weight which is the row's own

    @property
    def n_different(self) -> float:
        """The number of rows that differ, whatever they weigh."""
        return float(self.part.sum())


def distinct_rows(rows: RowSource, rng: np.random.Generator) -> Distinct:
    """Say how much each row counts as evidence.

    Rows that are equal up to sign count like one row together, however often they stand there and
    however heavy they are; and for less than one if they weigh less than a typical distinct row. So
    data in which every row stands m times, or has weight m, are the same evidence as the data once.

    Equal rows have equal heights over a random direction; different ones almost surely do not.
    """
    b = rng.standard_normal(rows.shape[1])
    kept = rows.scan(heights, b / np.linalg.norm(b), keep=True).kept
    assert kept is not None
    height = rows.gather(kept).astype(float) * rows.gather(rows.lengths)
    weight = rows.gather(rows.weights).astype(float)
    present = np.flatnonzero(weight > 0)
    order = present[np.argsort(height[present], kind="stable")]
    tolerance = 4 * np.finfo(rows.dtype).eps * height[order]
    group = np.cumsum(np.diff(height[order], prepend=-np.inf) > tolerance) - 1
    total = np.bincount(group, weight[order])
    share, in_common, part = np.zeros((3, len(weight)))
    share[order] = weight[order] / np.maximum(total, np.median(total))[group]
    in_common[order] = total[group]
    part[order] = weight[order] / total[group]
    return Distinct(share, in_common, part)
