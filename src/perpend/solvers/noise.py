"""How large the noise of the inliers is, from the scale of the two groups."""

import numpy as np

from perpend.solvers.result import Solution


def inlier_noise(
    solution: Solution, unit: float, *, linear: bool, unit_rows: bool = False
) -> float:
    """Return the expected norm of the inliers' noise; 0 where they are exact.

    The noise is s in every coordinate of the rows' span, so s sqrt(R) in all, with R their rank.
    Seen from the subspace of the other rows, as a linear fit sees it, the error of that subspace
    comes on top: the share d / N. An affine fit sees its own rows, which have turned it towards
    themselves by as much. Unit rows were u + e before they were scaled to norm one, which divided
    the noise by sqrt(1 + |e|^2).
    """
    groups = solution.groups
    if groups is None or groups.is_exact:
        return 0.0
    error = solution.components.shape[1] / (groups.share * groups.counts.sum())
    noise2 = groups.scale**2 * solution.rank / (1 + error if linear else max(1 - error, 0.1))
    if unit_rows:
        noise2 /= max(1 - noise2, 0.1)
    return float(np.sqrt(noise2)) * unit
