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
from perpend.solvers import TwoGroups

LUCK = 10.0  # a gain that rows without structure hardly ever reach, even without free parameters
LUCK_PER_PARAMETER = 0.75  # and this much more for each, beside the logarithm


class Certificate(NamedTuple):
    """How far the rows support a subspace."""

    n_rows: int  # rows nearer than the threshold
    n_free: int  # rows that any subspace of this dimension can be laid through
    gain: float  # L over the rows, without the n_free nearest
    needed: float  # the gain from which on an accident is the less likely explanation
    confidence: float  # that this is no accident


def certify(
    rows: RowSource, V: Array, groups: TwoGroups, dimension: int, share: Array
) -> Certificate:
    """Weigh the rows for the subspace with normals V (D, c) and the given dimension.

    `share` is what `distinct_shares` returned.
    """
    kept = rows.scan(distances, V, keep=True).kept
    assert kept is not None
    J = rows.gather(kept)
    counts = np.bincount(logarithmic_bins(J, groups.edges), share, minlength=len(groups.edges))
    # Leave out the n_free nearest: what is left of each bin after they are taken away.
    left = np.diff(np.maximum(np.cumsum(counts) - dimension, 0.0), prepend=0.0)
    gain = float(left @ groups.gain)
    n_parameters = V.shape[1] * dimension
    per_parameter = (
        LUCK_PER_PARAMETER + math.log(max(share.sum() / (V.shape[1] + dimension), 1)) / 2
    )
    needed = LUCK + n_parameters * per_parameter
    return Certificate(
        n_rows=round(float(share[groups.threshold >= J].sum())),
        n_free=dimension,
        gain=gain,
        needed=needed,
        confidence=float(special.expit((gain - needed) / (3 + n_parameters / 6))),
    )


def distinct_shares(rows: RowSource, rng: np.random.Generator) -> Array:
    """Return how much each row counts as evidence: its weight over that of a typical distinct row.

    Data in which every row stands m times, or has weight m, are no more evidence than the same data
    once. Rows are compared up to sign by their height over a random direction: equal rows have
    equal heights, different ones almost surely do not.
    """
    b = rng.standard_normal(rows.shape[1])
    kept = rows.scan(heights, b / np.linalg.norm(b), keep=True).kept
    assert kept is not None
    height, weight = rows.gather(kept), rows.gather(rows.weights).astype(float)
    present = np.flatnonzero(weight > 0)
    order = present[np.argsort(height[present], kind="stable")]
    tolerance = 4 * np.finfo(rows.dtype).eps * rows.norms[-1]
    group = np.cumsum(np.diff(height[order], prepend=-np.inf) > tolerance) - 1
    return weight / np.median(np.bincount(group, weight[order]))
