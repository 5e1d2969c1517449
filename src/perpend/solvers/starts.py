"""Where the descents begin."""

import numpy as np

from perpend._typing import Array
from perpend.geometry import random_directions
from perpend.solvers.span import RowSpan


def random_starts(rng: np.random.Generator, span: RowSpan, n_starts: int) -> Array:
    """Draw directions (D, n_starts) uniformly on the unit sphere of the rows' span."""
    B = random_directions(rng, span.rank, n_starts)
    return B if span.rank == len(span.basis) else span.basis @ B


def spectral_starts(span: RowSpan, n_starts: int) -> Array:
    """Return the axes (D, k) along which the rows vary least, at most as many as there are."""
    return span.axes[:, :n_starts]
