"""Where the descents begin."""

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.geometry import random_directions
from perpend.rows import RowSpan


def random_starts(rng: np.random.Generator, span: RowSpan, n_starts: int) -> Array:
    """Draw directions (D, n_starts) uniformly on the unit sphere of the rows' span."""
    B = random_directions(rng, span.rank, n_starts)
    return B if span.rank == len(span.basis) else span.basis @ B


def spectral_starts(span: RowSpan, n_starts: int) -> Array:
    """Return the axes (D, k) along which the rows vary least, at most as many as there are."""
    return span.axes[:, :n_starts]


def given_starts(init: Array, span: RowSpan) -> Array:
    """Return the given directions, one a row of `init`, as unit columns (D, k) inside the span."""
    B = np.asarray(init, dtype=float)
    n_features = span.n_features
    if B.ndim != 2 or B.shape[1] != n_features or len(B) == 0:
        raise InputError(
            f"init has shape {B.shape}; expected (n_starts, {n_features}): one direction a row."
        )
    norms = np.linalg.norm(B, axis=1)
    if not np.all(np.isfinite(norms) & (norms > 0)):
        raise InputError("init has a row that is zero or not finite; give directions.")
    B = (B / norms[:, None]).T
    if span.rank == n_features:
        return B
    inside = span.inside(B)  # what is orthogonal to every row is known already
    lengths = np.linalg.norm(inside, axis=0)
    if np.any(lengths < 1e-8):
        raise InputError(
            f"init has a direction that is orthogonal to every row (row {np.argmin(lengths)}); "
            "leave it out."
        )
    return inside / lengths
