r"""How far the axes of least variance know the complement: the limit of spectral starts.

With N inliers uniform on the sphere of S and M outliers uniform on that of R^D, n rows in all, the
second moments of a row have the eigenvalues

.. math:: \tfrac{M}{nD} + \tfrac{N}{nd} \text{ in } S, \qquad \tfrac{M}{nD} \text{ across it, in the
    ratio } \ell = \frac{1}{1 + \rho}, \quad \rho = \frac{N D}{M d}

This is a spiked covariance model with c spikes below the bulk. With gamma = D/n, the sample's
smallest eigenvalues leave the bulk, and their axes know more of the complement than chance, if

.. math:: \ell < 1 - \sqrt\gamma, \quad\text{that is,}\quad \rho > \sqrt\gamma / (1 - \sqrt\gamma)

(Baik and Silverstein 2006, the lower edge). The squared cosine of such an axis to the complement
tends to the value of `spectral_overlap` (Paul 2007; Benaych-Georges and Nadakuditi 2011). All this
is about the limit of many rows and features at a fixed c. Of finitely many the axes know more, and
ten times as much as chance at the limit: for D = 200, c = 5 and 1500 inliers a share of .36, .25
and .19 of the complement at 84, 87 and 90 % outliers, by the formula .23, .004 and 0, and .025 by
chance.
"""

import math

from perpend.exceptions import InputError


def spectral_overlap(
    n_inliers: float, n_outliers: float, n_features: int, codimension: int
) -> float:
    r"""Return the limit of the squared cosine of a smallest axis of all rows to the complement.

    The limit is that of many rows and features. For some hundred features it is too low: near
    `spectral_limit` it has almost nothing, and a quarter is measured.

    .. math::
        \frac{1 - \gamma/(1 - \ell)^2}{1 - \gamma/(1 - \ell)}
        \text{ where } 1 - \ell > \sqrt\gamma, \text{ and } 0 \text{ elsewhere}

    Examples
    --------
    >>> round(spectral_overlap(1500, 3500, 200, 5), 2), spectral_overlap(1500, 20_000, 200, 5)
    (0.66, 0.0)
    """
    if n_outliers == 0:
        return 1.0
    gamma = n_features / (n_inliers + n_outliers)
    rho = n_inliers * n_features / (n_outliers * (n_features - codimension))
    fall = rho / (1 + rho)  # 1 - l
    return (1 - gamma / fall**2) / (1 - gamma / fall) if fall > math.sqrt(gamma) else 0.0


def spectral_limit(n_inliers: int, n_features: int, codimension: int) -> float:
    """Return the share of outliers from which on the smallest axes know nothing, in the limit.

    The limit is that of many rows and features. For some hundred features it is no sharp border:
    beyond it axes know several times more than chance.

    Examples
    --------
    >>> round(spectral_limit(1500, 200, 5), 3)
    0.872
    """
    from scipy.optimize import brentq

    if not 0 < codimension < n_features or n_inliers < 1:
        raise InputError(
            f"n_inliers={n_inliers}, n_features={n_features}, codimension={codimension}; expected "
            "at least one inlier, and a codimension from 1 to n_features - 1."
        )

    def beyond(r: float) -> float:
        rho = (1 - r) / r * n_features / (n_features - codimension)
        return rho / (1 + rho) - math.sqrt(n_features * (1 - r) / n_inliers)

    # At r = 1 both terms are zero, and the second one, a square root, is larger before.
    if beyond(1e-9) <= 0:
        return 0.0
    return float(brentq(beyond, 1e-9, 1 - 1e-9))
