"""The codimension as the inliers see it: the largest gap in their second moments."""

from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.solvers import rank_tolerance

IN_USE = 0.9  # of the rows, as dimensions


class SpectralGap(NamedTuple):
    """Where the spectrum of the inliers falls from the subspace to the noise."""

    value: int  # number of small eigenvalues
    ratio: float  # of the eigenvalues across the gap
    runner_up: float  # the second-largest such ratio, 1 where there is no other
    second: int  # number of eigenvalues below that one


def largest_gap(spectrum: Array, dtype: Any, n_rows: float = np.inf) -> SpectralGap:
    """Find the largest ratio of neighbours in an ascending spectrum, above rounding errors.

    N rows span no more than N dimensions, whatever they are: eigenvalues beyond nine tenths of
    their number, `n_rows`, are left out.

    >>> largest_gap(np.array([1e-9, 2e-9, 0.5, 0.7]), np.float64).value
    2
    """
    n_idle = len(spectrum) - max(int(min(len(spectrum), IN_USE * n_rows)), 2)
    if n_idle > 0:
        gap = largest_gap(spectrum[n_idle:], dtype)
        return gap._replace(value=gap.value + n_idle, second=gap.second + n_idle)
    if len(spectrum) < 2:
        return SpectralGap(0, 1.0, 1.0, 0)
    floor = rank_tolerance(dtype) * spectrum[-1]
    t = np.maximum(spectrum, max(floor, np.finfo(float).tiny))
    ratios = t[1:] / t[:-1]
    order = np.argsort(ratios)
    value, ratio = int(order[-1]) + 1, float(ratios[order[-1]])
    if len(ratios) == 1:
        return SpectralGap(value, ratio, 1.0, 0)
    return SpectralGap(value, ratio, float(ratios[order[-2]]), int(order[-2]) + 1)
