"""Constants of uniform measures on spheres."""

import math


def average_height(dimension: int) -> float:
    r"""Return c_d, the mean of \|u_1\| for u uniform on the unit sphere of R^d.

    .. math:: c_d = \frac{\Gamma(d/2)}{\sqrt\pi\;\Gamma((d+1)/2)} \approx \sqrt{2/(\pi d)}

    It is the paper's double factorial (d-2)!!/(d-1)!!, times 2/pi where d is even.

    >>> [round(average_height(d), 5) for d in (1, 2, 3, 10, 200)]
    [1.0, 0.63662, 0.5, 0.25869, 0.05649]
    """
    return math.exp(math.lgamma(dimension / 2) - math.lgamma((dimension + 1) / 2)) / math.sqrt(
        math.pi
    )
