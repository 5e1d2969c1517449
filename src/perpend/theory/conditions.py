r"""When a descent converges to a normal: Theorem 1 (Zhu et al. 2018, Theorem 3) and Assumption 1.

With :math:`E = N \eta_X + M \eta_O`, theta the angle of a start to the complement of S, and
:math:`\mu' = 1 / (4 \max\{N c_{X,\min}, M c_{O,\max}\})`, the theorem requires

.. math::
    \tan\theta_0 < N c_{X,\min} / E, \quad N c_{X,\min} \ge E, \quad \mu^0 \le \mu', \quad
    K_0 \ge \frac{\tan\theta_0}{\mu^0 (N c_{X,\min} - \max\{1, \tan\theta_0\} E)}, \quad
    K_* \ge \frac{1}{\sqrt2\, \beta \mu' (N c_{X,\min} - E)}

and promises an angle that shrinks by beta every K* iterations. It is taken as published
and not proven again here. The conditions are sufficient, and far from necessary.
"""

import math
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.theory.statistics import Values


class Schedule(NamedTuple):
    r"""Steps mu^0 that are cut by beta at iteration K0 and every K* iterations after it.

    .. math::
        \mu^k = \mu^0 \;(k < K_0), \qquad
        \mu^k = \mu^0 \beta^{\lfloor (k - K_0)/K_* \rfloor + 1} \;(k \ge K_0)

    `mu0` multiplies the subgradient of the *sum* over unit rows, as in the paper, and may be one
    number for each start. The solver's ``GeometricStep`` counts in units of 1 / f(b0) instead.

    >>> Schedule(mu0=1.0, beta=0.5, K0=2, K_star=3).steps(7)
    array([1.  , 1.  , 0.5 , 0.5 , 0.5 , 0.25, 0.25])
    """

    mu0: float | Array  # the first step size, one for all starts or (k,)
    beta: float  # the factor of each cut, between 0 and 1
    K0: int  # iteration of the first cut
    K_star: int  # iterations from cut to cut

    def cuts(self, k: Array) -> Array:
        """Return how often the step has been cut by the time of iteration k."""
        k = np.asarray(k)
        return np.where(k < self.K0, 0, (k - self.K0) // self.K_star + 1)

    def steps(self, n_steps: int) -> Array:
        """Return the first step sizes: (n_steps,), or (n_steps, k) where mu0 is (k,)."""
        return np.multiply.outer(self.beta ** self.cuts(np.arange(n_steps)), np.asarray(self.mu0))


class Theorem1(NamedTuple):
    """Theorem 1 at given statistics and starts; made by `theorem1`."""

    tangents: Array  # (k,) tan(theta_0) of the starts
    pull: float  # N c_X,min: inliers pull a start towards the complement at least so strongly
    push: float  # E = N eta_X + M eta_O: everything else pushes it aside at most so strongly
    cone: float  # pull / push, the tangent of the widest admissible start
    step_bound: float  # mu'

    @property
    def inside(self) -> Array:
        """Which starts are inside the cone (k,); Assumption 1 requires all."""
        return self.tangents < self.cone

    @property
    def dominates(self) -> bool:
        """Whether N c_X,min >= N eta_X + M eta_O."""
        return 0 < self.pull >= self.push

    @property
    def holds(self) -> bool:
        """Whether both conditions hold and the steps can be chosen.

        N c_X,min = E would satisfy the paper's inequality, but then no K* is long enough.
        """
        return self.pull > self.push and bool(np.all(self.inside))

    def least_flat(self, mu0: float | Array) -> Array:
        """Return K-diamond(mu0) (k,), the least length of the flat phase; infinite outside.

        The paper's formula lacks the bracket that closes tan(theta_0). `mu0` may be an array, with
        a number for each start.
        """
        margin = self.pull - np.maximum(1, self.tangents) * self.push
        allowed = self.inside & (margin > 0)
        return np.where(allowed, self.tangents, np.inf) / (np.where(allowed, margin, 1) * mu0)

    def least_plateau(self, beta: float) -> float:
        """Return the least length of a plateau; infinite unless N c_X,min > E.

        The paper prints c_X; c_X,min is the only reading that fits.
        """
        margin = math.sqrt(2) * beta * self.step_bound * (self.pull - self.push)
        return 1 / margin if margin > 0 else math.inf

    def schedule(self, *, beta: float = 0.5, mu0: float | None = None) -> Schedule:
        """Return the shortest schedule that the theorem admits for all starts.

        `mu0` is at most mu', which is the default.
        """
        mu0 = self.step_bound if mu0 is None else mu0
        if not (0 < beta < 1 and 0 < mu0 <= self.step_bound):
            raise InputError(
                f"beta={beta}, mu0={mu0}; expected beta between 0 and 1, and mu0 above 0 and at "
                f"most mu' = {self.step_bound:.3g}."
            )
        K0, K_star = float(np.max(self.least_flat(mu0), initial=0.0)), self.least_plateau(beta)
        if not math.isfinite(K0 + K_star):
            raise InputError(
                "no schedule is admissible: a start is outside the cone (tan(theta_0) up to "
                f"{np.max(self.tangents):.3g}, cone {self.cone:.3g}), or N c_X,min = "
                f"{self.pull:.3g} does not exceed N eta_X + M eta_O = {self.push:.3g}. "
                "Choose mu0, K0 and K_star by hand; the theorem then promises nothing."
            )
        return Schedule(mu0, beta, math.ceil(K0), max(1, math.ceil(K_star)))

    def angle_bound(self, schedule: Schedule, k: Array) -> Array:
        """Return the theorem's bound on tan(theta_k) for iterations k: (len(k), n_starts).

        The paper prints tan(theta_0) on the left side; theta_k is meant.
        """
        k = np.asarray(k)[:, None]
        flat = np.asarray(schedule.mu0) / (math.sqrt(2) * self.step_bound)
        late = flat * schedule.beta ** np.maximum(schedule.cuts(k) - 1.0, 0)
        return np.where(k < schedule.K0, np.maximum(self.tangents, flat), late)


def theorem1(values: Values, tangents: Array) -> Theorem1:
    """Evaluate Theorem 1 for starts with the given tan(theta_0).

    Parameters
    ----------
    values : Values
        ``statistics(...).estimated`` or ``.certified``. With the certified values, conditions that
        hold are proven. The step bound mu' gets smaller as c_X,min grows, so there the upper end
        of c_X,min is used; a shorter step, and the longer K* and larger angle that follow from it,
        are on the safe side.

    Examples
    --------
    >>> values = Values(10_000, 40_001, 5, 10, 0.3662, 0.3821, 0.2550, 0.2629, 0.0208, 0.0082)
    >>> result = theorem1(values, np.array([1.0, 7.0]))
    >>> result.dominates, result.inside
    (True, array([ True, False]))
    """
    pull = values.n_inliers * values.c_x_min
    push = values.n_inliers * values.eta_x + values.n_outliers * values.eta_o
    most = values.c_x_min if values.c_x_min_most is None else values.c_x_min_most
    speed = 4 * max(values.n_inliers * most, values.n_outliers * values.c_o_max)
    cone = math.inf if push == 0 < pull else pull / push if pull > 0 else 0.0
    return Theorem1(
        np.atleast_1d(np.asarray(tangents, dtype=np.float64)),
        pull,
        push,
        cone,
        1 / speed if speed > 0 else math.inf,
    )


def assumption1(values: Values, tangents: Array) -> bool:
    """Whether every start is inside Theorem 1's cone: tan(theta_0) < N c_X,min / E.

    Examples
    --------
    >>> values = Values(1500, 1500, 25, 30, 0.138, 0.185, 0.124, 0.171, 0.0385, 0.0378)
    >>> assumption1(values, np.array([1.0, 1.5])), assumption1(values, np.array([1.0, 2.2]))
    (True, False)
    """
    return bool(np.all(theorem1(values, tangents).inside))


def cone_probability(values: Values) -> float:
    """Return the probability that a uniform start is inside Theorem 1's cone.

    sin^2(theta) of a uniform direction has the distribution Beta(d/2, c/2).

    Examples
    --------
    >>> values = Values(1500, 1500, 25, 30, 0.138, 0.185, 0.124, 0.171, 0.0385, 0.0378)
    >>> round(cone_probability(values), 3)
    0.217
    """
    from scipy.special import betainc

    cone = theorem1(values, np.zeros(0)).cone
    if values.dimension == 0 or values.codimension == 0 or cone == 0:
        return float(values.dimension == 0 < values.codimension)
    sine2 = 1 / (1 + cone**-2)
    return float(betainc(values.dimension / 2, values.codimension / 2, sine2))


def widest_start(values: Values, n_starts: int, probability: float) -> float:
    """Return the tan(theta_0) that `n_starts` uniform starts all stay below with `probability`.

    Parameters
    ----------
    probability : float
        Of all of them staying below, from 0 to 1.

    Examples
    --------
    >>> values = Values(1500, 1500, 25, 30, 0.138, 0.185, 0.124, 0.171, 0.0385, 0.0378)
    >>> round(widest_start(values, 1, 0.5), 2), round(widest_start(values, 20, 0.99), 1)
    (2.36, 12.9)
    """
    from scipy.special import betaincinv

    if values.dimension == 0 or values.codimension == 0:
        return 0.0 if values.dimension == 0 else math.inf
    # The upper tail: cos^2 ~ Beta(c/2, d/2), and 1 - p^(1/k) keeps its digits in this form.
    tail = -math.expm1(math.log(probability) / n_starts)
    cosine2 = float(betaincinv(values.codimension / 2, values.dimension / 2, tail))
    return math.sqrt((1 - cosine2) / cosine2) if cosine2 > 0 else math.inf
