"""The codimension as the inliers see it: the largest gap in their second moments."""

import math
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.solvers import rank_tolerance


class SpectralGap(NamedTuple):
    """Where the spectrum of the inliers falls from the subspace to the noise."""

    value: int  # number of small eigenvalues
    ratio: float  # of the eigenvalues across the gap
    runner_up: float  # the second-largest such ratio, 1 where there is no other
    second: int  # number of eigenvalues below that one


def largest_gap(spectrum: Array, dtype: Any, n_rows: float = math.inf) -> SpectralGap:
    """Find the largest ratio of neighbours in an ascending spectrum, above rounding errors.

    It belongs to `n_rows` rows. These span no more dimensions than they are: where there are fewer
    of them than dimensions, that the spectrum ends with them is no gap.

    >>> largest_gap(np.array([1e-9, 2e-9, 0.5, 0.7]), np.float64).value
    2
    """
    ratios, hidden = _ratios(spectrum, dtype, n_rows)
    if len(ratios) == 0:
        return SpectralGap(0, 1.0, 1.0, 0)
    order = np.argsort(ratios)
    value, ratio = int(order[-1]) + 1, float(ratios[order[-1]])
    if len(ratios) == 1:
        return SpectralGap(value + hidden, ratio, 1.0, 0)
    return SpectralGap(value + hidden, ratio, float(ratios[order[-2]]), int(order[-2]) + 1 + hidden)


def last_rise(spectrum: Array, dtype: Any, n_rows: float, ratio: float) -> int | None:
    """Return the number of eigenvalues below the last rise by more than `ratio`, if there is one.

    >>> last_rise(np.array([1e-9, 1e-5, 0.5, 0.7]), np.float64, 100, 10.0)
    2
    """
    ratios, hidden = _ratios(spectrum, dtype, n_rows)
    (steep,) = np.nonzero(ratios > ratio)
    return int(steep[-1]) + 1 + hidden if len(steep) else None


def _ratios(spectrum: Array, dtype: Any, n_rows: float) -> tuple[Array, int]:
    """Return the ratios of neighbours, and how many eigenvalues before them must be zero."""
    few = n_rows <= len(spectrum)
    hidden = max(len(spectrum) - max(2, int(n_rows) - 1), 0) if few else 0
    floor = rank_tolerance(dtype) * float(np.max(spectrum, initial=0.0))
    t = np.maximum(spectrum[hidden:], max(floor, np.finfo(float).tiny))
    return t[1:] / t[:-1], hidden
