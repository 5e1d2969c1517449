r"""When the limits span the whole complement: Theorem 7, its bound on Delta, and random starts.

For k uniform starts inside the cone of Theorem 1, Theorem 7 requires

.. math::
    1 - C_1 \sqrt{k/D} - \epsilon/\sqrt D \;>\; \sqrt k\, \kappa\, \bar e, \qquad
    \bar e = \eta_O + \max\{c_{O,\max} - c_D, c_D - c_{O,\min}\}

where the left side bounds sigma_k(B^0) from below with probability 1 - 2 exp(-C_2 eps^2), and the
right side bounds the norm of Delta from above. C_1 and C_2 are absolute constants whose
values are not published, so they are arguments.

As it is printed it can't be proven: full rank of B^0 - Delta is not what the span needs
(`spans_complement`), and starts that are known to be inside the cone are no longer uniform, as the
bound on sigma_k requires. `corrected_theorem7` needs neither, and its constants are explicit:

.. math::
    \frac{\sqrt k - \sqrt c - t}{\sqrt D + s} \;>\; \sqrt k\, \kappa\, \max_b \|P_\perp e_O(b)\|

Even on easy data the right sides are thousands of times too large: both are asymptotic. The
corrected one holds for finitely many rows where the subspace is a line or a plane among many
features, outliers are few, and starts are many.
"""

import math
from typing import NamedTuple

import numpy as np

from perpend._deprecation import removed_parameters
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.geometry import average_height
from perpend.theory.conditions import Schedule, Theorem1
from perpend.theory.discrete import outlier_error_bound
from perpend.theory.statistics import Values


class Growth(NamedTuple):
    """How much the outliers' errors accumulate with a schedule; made by `growth`."""

    kappa: float  # infinite if a ratio is 1 or more
    ratio: Array  # (k,) or (1,): r_i, by which the terms of delta shrink
    beta_bound: float  # beta must be below this for all ratios to be below 1


class Theorem7(NamedTuple):
    """Both sides of a condition; made by `theorem7` and `corrected_theorem7`."""

    left: float  # lower bound of sigma_k(B^0); corrected, of sigma_c(P_perp B^0)
    right: float  # upper bound of ||Delta||_2; corrected, of ||P_perp Delta||_2
    growth: Growth  # kappa, and what it is made of
    probability: float  # at least this, if the condition holds

    @property
    def holds(self) -> bool:
        """Whether the condition holds; Assumption 1 is required, too."""
        return self.left > self.right


def growth(values: Values, schedule: Schedule) -> Growth:
    r"""Return kappa, the ratios r_i and the bound on beta of Theorem 7.

    .. math::
        r_i = \beta^{1/K_*}
            \frac{1 + \mu_i^0 (N (\eta_X + c_{X,\max}) + M (\eta_O + c_{O,\max}))}
            {1 - \mu_i^0 M c_D}, \qquad
        \kappa = \max_i \frac{M \mu_i^0}{\beta^{K_0/K_*} (1 - r_i) (1 - \mu_i^0 M c_D)}

    The last factor of kappa is missing in the paper: the product up to k has k + 1 denominators
    but only k norms, as ||b^0|| = 1. All r_i must be below 1, that is, beta below `beta_bound`.
    """
    v, mu0 = values, np.atleast_1d(np.asarray(schedule.mu0, dtype=np.float64))
    left_over = 1 - mu0 * v.n_outliers * average_height(v.n_features)  # 1 - mu M c_D
    if not np.all(left_over > 0):
        raise InputError(
            f"schedule.mu0 is up to {np.max(mu0):.3g}; expected less than 1 / (M c_D) = "
            f"{np.min(mu0 / (1 - left_over)):.3g}."
        )
    longest = (1 + mu0 * _speed(v)) / left_over  # ||b^{k+1}|| / (1 - mu M c_D) at most
    ratio = longest * schedule.beta ** (1 / schedule.K_star)
    # beta^(-K0/K*) may overflow, and 1 - r may be zero: then infinity is right.
    with np.errstate(over="ignore", divide="ignore"):
        head = np.exp(-math.log(schedule.beta) * schedule.K0 / schedule.K_star)
        piled_up = head * mu0 / (np.maximum(1 - ratio, 0) * left_over)
    kappa = v.n_outliers * float(np.max(piled_up)) if v.n_outliers else 0.0
    return Growth(kappa, ratio, float(np.min(longest ** -float(schedule.K_star))))


def delta_bound(values: Values, schedule: Schedule, n_starts: int) -> float:
    r"""Return :math:`\sqrt k\, \kappa\, \bar e`, a bound on \|\|Delta\|\|_2 for `n_starts` starts.

    It holds at every K, and is proven with certified values. It is infinite if beta is too large.
    """
    error = outlier_error_bound(values)
    # Without an error nothing accumulates, however large kappa is.
    return math.sqrt(n_starts) * growth(values, schedule).kappa * error if error else 0.0


def theorem7(
    values: Values, schedule: Schedule, n_starts: int, *, C1: float, C2: float, eps: float
) -> Theorem7:
    """Evaluate the condition of Theorem 7.

    Parameters
    ----------
    schedule : Schedule
        The step sizes; they must also satisfy Theorem 1.
    C1, C2 : float
        The constants of Theorem 5.58 in Vershynin (2010) for uniform unit vectors, which the paper
        leaves open.
    eps : float
        A larger value makes the statement more probable and the condition harder.

    Notes
    -----
    The paper prints c_d on the right side; see `outlier_error_bound` for why c_D and a maximum are
    used, and `growth` for a factor that kappa lacks. The theorem uses Lemma 6, and that step of the
    proof has a gap: `spans_complement` says which condition closes it.
    """
    return Theorem7(
        start_singular_bound(n_starts, values.n_features, C1=C1, eps=eps),
        delta_bound(values, schedule, n_starts),
        growth(values, schedule),
        max(0.0, 1 - 2 * math.exp(-C2 * eps**2)),
    )


def start_singular_bound(n_starts: int, n_features: int, *, C1: float, eps: float) -> float:
    r"""Return :math:`1 - C_1 \sqrt{k/D} - \epsilon/\sqrt D`, a lower bound of sigma_k(B^0).

    For k independent uniform unit columns it holds with probability at least 1 - 2 exp(-C_2 eps^2).
    Theorem 5.58 of Vershynin (2010) is about columns of norm sqrt(D); here it is divided by that.
    A negative bound says nothing.
    """
    return 1 - C1 * math.sqrt(n_starts / n_features) - eps / math.sqrt(n_features)


def corrected_theorem7(
    values: Values,
    schedule: Schedule,
    n_starts: int,
    *,
    failure: float = 0.01,
    error: float | None = None,
) -> Theorem7:
    r"""Evaluate a form of Theorem 7 that can be proven: the limits of uniform starts span.

    The limits are projections of b^0 - delta (`discrete_psgm`). They span the complement if
    sigma_c(P_perp B^0) > ||P_perp Delta|| (`spans_complement`). The right side is at most
    sqrt(k) kappa max ||P_perp e_O||, as each delta is a sum of at most kappa times such errors; for
    the left side see `projected_singular_bound`. Starts are not conditioned on anything: that all
    are inside the cone of Theorem 1 is an event of its own.

    Parameters
    ----------
    schedule : Schedule
        The step sizes; they must satisfy Theorem 1 for all starts.
    failure : float
        Probability that the bound on the starts does not hold. The probability that a start is
        outside the cone comes on top of it (`widest_start`).
    error : float, optional
        A bound on the largest ``||P_perp e_O(b)||``, such as `complement_error` certifies. By
        default that of the whole error, which is larger.
    """
    size = outlier_error_bound(values) if error is None else error
    known = growth(values, schedule)
    return Theorem7(
        projected_singular_bound(n_starts, values.codimension, values.n_features, failure=failure),
        math.sqrt(n_starts) * known.kappa * size if size else 0.0,
        known,
        1 - failure,
    )


def _bound_by_constants(
    n_starts: int, codimension: int, n_features: int, *, C1: float, eps: float
) -> float:
    r"""Return :math:`(\sqrt k - C_1 \sqrt c - \epsilon)/\sqrt D`, the bound of version 0.1."""
    room = math.sqrt(n_starts) - C1 * math.sqrt(codimension) - eps
    return room / math.sqrt(n_features)


@removed_parameters(
    "C1",
    "eps",
    until="0.4",
    instead="give failure, the probability with which the bound may fail.",
    former=_bound_by_constants,
)
def projected_singular_bound(
    n_starts: int, codimension: int, n_features: int, *, failure: float
) -> float:
    r"""Return a lower bound of sigma_c(P_perp B^0) for k independent uniform unit columns.

    .. math::
        \frac{\sqrt k - \sqrt c - t}{\sqrt D + s}, \qquad
        e^{-t^2/2} = k\, e^{-s^2/2} = \tfrac12 \text{failure}

    A uniform column is g / ||g|| for a Gaussian g. The c coordinates of the g in the complement are
    a Gaussian c x k matrix, whose least singular value is at least sqrt(k) - sqrt(c) - t with
    probability 1 - exp(-t^2/2) (Davidson and Szarek 2001), and each ||g|| is at most sqrt(D) + s
    with probability 1 - exp(-s^2/2). The left side of Theorem 7 falls with the number of starts;
    this one grows. A negative bound says nothing.

    Parameters
    ----------
    failure : float
        The bound holds with probability at least 1 - failure.

    Examples
    --------
    >>> round(projected_singular_bound(60, 5, 200, failure=0.01), 3)
    0.122
    """
    t, s = (math.sqrt(2 * math.log(2 * number / failure)) for number in (1, n_starts))
    room = math.sqrt(n_starts) - math.sqrt(codimension) - t
    return room / (math.sqrt(n_features) + s)


def best_schedule(
    values: Values, conditions: Theorem1, n_sizes: int = 200, *, least_size: float = 1e-6
) -> Schedule:
    r"""Return, among schedules that Theorem 1 admits, one with a kappa close to the least.

    With rho = beta^(1/K*) and q the quotient in r_i, kappa is proportional to
    rho^(-K0) / (1 - q rho), which is least at rho = K0 / (q (1 + K0)). beta = 1/e makes the widest
    range of rho admissible; mu0 is searched on a logarithmic grid below mu'.

    Parameters
    ----------
    conditions : Theorem1
        What the schedule must satisfy.
    n_sizes : int
        Number of first step sizes that are tried.
    least_size : float
        The least of them, as a share of mu'. The default may take millions of iterations; with 0.1
        it takes dozens, and kappa is hardly larger.
    """
    if not 0 < least_size <= 1:
        raise InputError(f"least_size={least_size}; expected above 0 and at most 1.")
    v, beta, c_D = values, math.exp(-1), average_height(values.n_features)
    mu0 = conditions.step_bound * np.logspace(math.log10(least_size), 0, n_sizes)
    K0 = np.ceil(np.max(conditions.least_flat(mu0[:, None]), axis=1, initial=0.0))  # (n_sizes,)
    least = conditions.least_plateau(beta)
    if not math.isfinite(least + float(np.max(K0))):
        conditions.schedule(beta=beta)  # says why there is none
    q = (1 + mu0 * _speed(v)) / (1 - mu0 * v.n_outliers * c_D)
    best = np.maximum(K0, 1) / (q * (1 + np.maximum(K0, 1)))
    K_star = np.ceil(np.maximum(least, -1 / np.log(best)))
    candidates = [
        Schedule(float(m), beta, int(a), int(b)) for m, a, b in zip(mu0, K0, K_star, strict=True)
    ]
    return min(candidates, key=lambda schedule: growth(values, schedule).kappa)


def _speed(v: Values) -> float:
    """Return a bound on the norm of the subgradient: N (eta_X + c_X,max) + M (eta_O + c_O,max)."""
    return v.n_inliers * (v.eta_x + v.c_x_max) + v.n_outliers * (v.eta_o + v.c_o_max)
