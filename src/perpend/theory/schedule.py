"""The paper's piecewise geometrically diminishing steps, in absolute size."""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array


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
        """Return how often the step has been cut by the time of iteration k.

        Parameters
        ----------
        k : array of int
            Iterations, from 0.

        Returns
        -------
        array of int
            Of the shape of `k`.
        """
        k = np.asarray(k)
        return np.where(k < self.K0, 0, (k - self.K0) // self.K_star + 1)

    def steps(self, n_steps: int) -> Array:
        """Return the first step sizes: (n_steps,), or (n_steps, k) where mu0 is (k,).

        Parameters
        ----------
        n_steps : int
            Number of iterations.

        Returns
        -------
        array
        """
        return np.multiply.outer(self.beta ** self.cuts(np.arange(n_steps)), np.asarray(self.mu0))
