r"""The log-evidence of a fitted subspace in rows: how much likelier they are with it than without.

Rows are inliers with probability p, otherwise outliers. The log-evidence of a row x is

.. math:: \log\Bigl((1 - p) + p\, \frac{f_\text{in}(x)}{f_\text{out}(x)}\Bigr)

The outliers' density does not depend on the subspace, so it is the same for every codimension, and
the mean over rows that were not fitted compares codimensions fairly. Without normals both densities
are equal, and the score is 0.

*Linear.* Only directions count: an outlier's is uniform on the sphere. An inlier of norm nu is a
Gaussian vector of deviation nu / sqrt(d) along the d dimensions of the subspace, plus noise of
deviation s in all coordinates. Its direction has, at the distance J from the subspace, the density

.. math::
    \frac{f_\text{in}}{f_\text{out}} = \Bigl(1 + \frac{\nu^2}{d s^2}\Bigr)^{c/2}
    \Bigl(1 + \frac{J^2}{d s^2}\Bigr)^{-(c + d)/2}

relative to the uniform one (an angular central Gaussian). It integrates to one for every c.

*Affine.* An outlier has a Student density t_D about a robust centre of all fitted rows, as wide and
with as long tails as these have. An inlier has Gaussian noise across the subspace and, along it,
the marginal density t_d of the outliers, so :math:`f_\text{in} = N(J; s^2 I_c)\, t_d`.

If the rows span less than the whole space, this is done twice: for the span in the whole space,
on which all rows lie but for rounding errors, and for the subspace in the span.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend.exceptions import of_earlier_version
from perpend.rows.centred import centred_norms
from perpend.rows.kinds import to_numpy
from perpend.rows.views import whole_view
from perpend.structure.law import SHARE_LEAST, SHARE_MOST

REFERENCE_ROWS = 2048  # rows, for a centre and two moments to a few per cent
FREEDOM = np.geomspace(1.0, 1000.0, 61)  # from Cauchy tails to Gaussian ones


class Reference(NamedTuple):
    r"""The Student law of the rows of an affine fit, whatever their subspace.

    The logarithm of a row's distance r from the centre has the mean and variance

    .. math::
        \log\tau + \tfrac12(\log k + \psi(D/2) - \psi(k/2)), \qquad
        \tfrac14(\psi'(D/2) + \psi'(k/2))

    with scale tau and k degrees of freedom, which are fitted to the rows.
    """

    centre: Array  # (D,)
    scale: float  # tau
    freedom: float  # k

    @classmethod
    def of(cls, X: Array, weight: Array | None) -> "Reference":
        """Return that of the fitted rows; it has a seed of its own, so all models share it."""
        (n, D), rng = X.shape, np.random.default_rng(0)
        if n > REFERENCE_ROWS:
            some = np.sort(rng.choice(n, REFERENCE_ROWS, replace=False))
            X, weight = X[some], None if weight is None else weight[some]
        centre = whole_view(X, weight, rng).centre
        r = _norms(X, centre)
        w = (r > 0) * (1.0 if weight is None else weight)
        if not np.any(w > 0):  # all rows are equal
            return cls(centre, 1.0, 1.0)
        logs = np.log(np.where(r > 0, r, 1.0))
        mean = float(np.average(logs, weights=w))
        variance = float(np.average(np.square(logs - mean), weights=w))
        rest = 4 * variance - special.polygamma(1, D / 2)  # falls with k
        k = float(FREEDOM[np.argmin(np.abs(special.polygamma(1, FREEDOM / 2) - rest))])
        shift = math.log(k) + float(special.psi(D / 2) - special.psi(k / 2))
        return cls(centre, math.exp(mean - shift / 2), k)

    def log_density(self, r: Array, d: int) -> Array:
        """Return the log density of a d-dimensional marginal, at the distance r."""
        k = self.freedom
        constant = special.gammaln((k + d) / 2) - special.gammaln(k / 2)
        constant -= d * math.log(math.sqrt(k * math.pi) * self.scale)
        return constant - (k + d) * _log_root(r / (math.sqrt(k) * self.scale))


class _Step(NamedTuple):
    """From one space to a subspace of it."""

    normals: Array  # (c, D)
    dimension: int  # d
    share: float  # p
    noise: float  # s


def log_evidence(model: Any, X: Array) -> Array:
    """Return the log-evidence (n,) of each row of X (n, D) for the subspace of a fitted model."""
    first, second = _steps(model)
    return _affine(model, X, first, second) if model.affine_ else _linear(model, X, first, second)


def _steps(model: Any) -> tuple[_Step, _Step]:
    """Return the steps from the whole space to the span of the rows, and on to the subspace."""
    if not (hasattr(model, "_distance_record") and hasattr(model, "_outlier_odds")) or (
        model.affine_ and getattr(model, "_reference", None) is None
    ):
        raise of_earlier_version("too little for a score")
    record, normals = model._distance_record, to_numpy(model.normals_).astype(float)
    d, inside, floor = model.n_components_, 0, model._outlier_odds["threshold"]
    share, noise = SHARE_MOST, floor
    if record is not None:
        inside, floor = min(record["codimension"], len(normals)), float(record["edges"][0])
        share = record["n_inliers"] / max(record["n_inliers"] + record["n_outliers"], 1e-300)
        share, noise = min(max(share, SHARE_LEAST), SHARE_MOST), max(record["scale"], floor)
    # A linear fit has the normals inside the span first, an affine one those outside.
    cut = len(normals) - inside if model.affine_ else inside
    parts = (normals[:cut], normals[cut:]) if model.affine_ else (normals[cut:], normals[:cut])
    return _Step(parts[0], d + inside, SHARE_MOST, floor), _Step(parts[1], d, share, noise)


def _linear(model: Any, X: Array, first: _Step, second: _Step) -> Array:
    total, origin = np.zeros(X.shape[0]), np.zeros(X.shape[1])
    norms = _norms(X, origin)
    unit = np.where(norms > 0, norms, 1.0) if model.normalize else 1.0
    nu = norms / unit
    for normals, d, share, noise in (first, second):
        if len(normals):
            J = np.minimum(_norms(X, origin, normals) / unit, nu)
            s = noise * math.sqrt(max(d, 1))  # with d = 0, J = nu and any s will do
            ratio = len(normals) * _log_root(nu / s) - (len(normals) + d) * _log_root(J / s)
            total += _log_mixture(share, ratio)
            sine = J / np.where(nu > 0, nu, 1.0)
            nu = nu * np.sqrt((1 - sine) * (1 + sine))  # of the part inside
    return total


def _affine(model: Any, X: Array, first: _Step, second: _Step) -> Array:
    law = Reference(**model._reference)
    total, r, D = np.zeros(X.shape[0]), _norms(X, law.centre), X.shape[1]
    components = to_numpy(model.components_).astype(float)
    complements = (np.vstack([second.normals, components]), components)
    for (normals, d, share, noise), basis in zip((first, second), complements, strict=True):
        if c := len(normals):
            J = _norms(X, to_numpy(model.location_), normals)
            along = _norms(X, law.centre, basis)
            with np.errstate(over="ignore"):
                across = -np.square(J / noise) / 2 - c / 2 * math.log(2 * math.pi * noise**2)
            inliers = across + law.log_density(along, d)
            total += _log_mixture(share, inliers - law.log_density(r, D))
            r, D = along, d
    return total


def _norms(X: Array, centre: Array, basis: Array | None = None) -> Array:
    A = None if basis is None else basis.T
    return np.asarray(to_numpy(centred_norms(X, centre, A)), dtype=float)


def _log_root(z: Array) -> Array:
    """Return log(1 + z^2) / 2, where z^2 may overflow."""
    return np.log(np.hypot(1.0, z))


def _log_mixture(share: float, log_ratio: Array) -> Array:
    """Return log(1 - p + p e^ratio)."""
    return np.logaddexp(math.log1p(-share), math.log(share) + log_ratio)
