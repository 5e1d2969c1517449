"""How uncertain a fitted subspace is: covariance of the normals, tests of other subspaces, words.

A normal n with offset b = n.m at the location m errs by turns towards the components u_k, and along
itself; these errors are uncorrelated (`perpend.structure.labels.normals_error`):

    cov [n, b] = sum_k v_k g_k g_k^T + v e e^T,    g_k = [u_k, u_k.m],    e = [0, 1].

The noise in v was estimated from the members, with nu = n_members - d - 1 degrees of freedom (where
weights fall, members count less). So errors over their deviations follow Student's t, and a sum of
k squares over k follows F(k, nu).
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from perpend._typing import Array
from perpend.exceptions import InputError, of_earlier_version
from perpend.rows.kinds import to_numpy
from perpend.structure.labels import NormalsError

NO_NORMALS = "The model has codimension 0: it has no normals. Check codimension_ first."


class Uncertainty(NamedTuple):
    """How far a subspace may be off, at some level."""

    angle: float  # degrees, in the direction that is known least
    offset: float  # along a normal at `location_`, in the units of the data; 0 if linear


class UncertainSubspace:
    """What a fitted model knows about its own errors."""

    @property
    def normals_covariance_(self) -> Array:
        """The covariance of each normal: ``(codimension_, n_features + 1, n_features + 1)``.

        Entry j is that of ``[*normals_[j], intercept_[j]]``.
        """
        check_is_fitted(self)
        try:
            error, U, location = _parts(self)
        except InputError as unknown:  # so that hasattr says whether it is known
            raise AttributeError(str(unknown)) from unknown
        G = np.hstack([U, (U @ location)[:, None]])
        one = (G.T * error.along) @ G
        one[-1, -1] += error.offset
        return error.across[:, None, None] * one

    def uncertainty(self, level: float = 0.95) -> Uncertainty:
        """Return how far the subspace may be off: the angle and the offset.

        Parameters
        ----------
        level : float, default=0.95
            The probability that the true angle, in the least certain direction, is at most the
            returned one; the same for the offset along a normal.

        Returns
        -------
        Uncertainty
            `angle` in degrees, and `offset` at `location_` in the units of the data.

        Notes
        -----
        This is the error caused by the noise of the inliers, from the weights of the last steps of
        the fit (a sandwich estimate). Noise is assumed to be independent and equal everywhere. It
        does not include deviations from a plane, such as a road that bends, or errors that many
        points share.

        Examples
        --------
        >>> import numpy as np
        >>> from perpend import DPCP
        >>> rng = np.random.default_rng(0)
        >>> floor = np.column_stack([rng.uniform(-4, 4, (900, 2)), rng.normal(0, 0.01, 900)])
        >>> points = np.vstack([floor, rng.uniform([-4, -4, 0], [4, 4, 2.5], (700, 3))])
        >>> model = DPCP(affine=True, random_state=1000).fit(points)
        >>> model.uncertainty().angle < 0.03, model.uncertainty().offset < 0.001
        (True, True)
        >>> model.p_value([0, 0, 1]) > 0.05, model.p_value([0, 0.01, 1]) > 0.05
        (True, False)
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise InputError(f"level={level!r}; expected a number between 0 and 1.")
        error, _, _ = _parts(self)
        if not len(error.across):
            raise InputError(NO_NORMALS)
        times = float(stats.t.ppf((1 + level) / 2, error.free))
        most = np.max(error.across, initial=0.0)
        angle = times * np.sqrt(most * np.max(error.along, initial=0.0))
        offset = times * np.sqrt(most * error.offset)
        return Uncertainty(float(np.degrees(min(angle, np.pi / 2))), float(offset))

    def p_value(self, normals: Array, intercept: Array | None = None) -> float:
        """Test whether another subspace differs from this one by more than the errors of the fit.

        Parameters
        ----------
        normals : array-like of shape (codimension_, n_features)
            Of the other subspace, of any length; a single one may be an array of one dimension.
        intercept : array-like of shape (codimension_,), optional
            The other subspace is ``normals @ x = intercept``; 0 by default.

        Returns
        -------
        float
            The p-value: below 0.05, the other subspace is outside the 95 % region.
        """
        check_is_fitted(self)
        return _p_value(self, normals, intercept)


def _p_value(model: Any, normals: Array, intercept: Array | None) -> float:
    """Return the chance of errors as large as the difference from normals @ x = intercept.

    N' = R (N + T U) with the turn T (c, d) of the normals N to the components U, and the offset is
    h = R^-1 (b' - N' m) at the location m. The mean of k squares over variances follows F(k, nu).
    """
    error, U, location = _parts(model)
    N, N2 = to_numpy(model.normals_).astype(float), np.atleast_2d(np.asarray(normals, dtype=float))
    c = len(N)
    if not c:
        raise InputError(NO_NORMALS)
    b2 = np.zeros(c) if intercept is None else np.ravel(np.asarray(intercept, dtype=float))
    if N2.shape != N.shape or len(b2) != c:
        raise InputError(
            f"normals of shape {N2.shape} and {len(b2)} numbers as intercept; expected "
            f"{N.shape} and {c}, as this model has."
        )
    if not np.all(np.isfinite(N2)) or np.linalg.matrix_rank(N2) < c:
        what = "is zero or not finite" if c == 1 else "are not finite, or linearly dependent"
        raise InputError(
            f"normals {what}, which gives no subspace. Give {c} independent direction"
            f"{'s' * (c > 1)}, of any length."
        )
    R = N2 @ N.T
    if np.linalg.matrix_rank(R) < c:
        return 0.0  # one is at a right angle to all of ours
    off, variance = np.linalg.solve(R, N2 @ U.T), np.outer(error.across, error.along)
    if model.affine_:
        h = np.linalg.solve(R, b2 - N2 @ location)
        off = np.hstack([off, h[:, None]])
        variance = np.hstack([variance, (error.across * error.offset)[:, None]])
    known = variance > 0
    if np.any(np.abs(off[~known]) > np.sqrt(np.finfo(float).eps)):
        return 0.0  # where there is no noise, nothing may differ
    if not np.any(known):
        return 1.0
    mean = np.mean(off[known] ** 2 / variance[known])
    return float(stats.f.sf(mean, np.count_nonzero(known), error.free))


def _parts(model: Any) -> tuple[NormalsError, Array, Array]:
    """Return the variances, the components (d, D), and the location (D,)."""
    if not hasattr(model, "_normals_error"):
        raise of_earlier_version("no uncertainty")
    if model._normals_error is None:
        raise InputError(
            f"This {type(model).__name__} has no uncertainty: that needs a subspace which was "
            'refined by complete rows. Use DPCP(refine="auto") without groups and missing entries.'
        )
    U, location = to_numpy(model.components_).astype(float), to_numpy(model.location_)
    return NormalsError(**model._normals_error), U, location.astype(float)
