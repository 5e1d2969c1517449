"""From lifted normals to normals and offsets of the data's own space.

A lifted normal (w, w0) says w.z + w0 = 0 for z = (x - m) / s. Together they are orthonormal with
their offsets; the normals of the affine subspace are to be orthonormal without them.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array

FARTHEST = 1e6
"""Times the scale of the view. Normals that meet the rows' space only beyond this are those of the
ideal hyperplane, on which nothing lies."""


class Flat(NamedTuple):
    """An affine subspace in the coordinates of a view: all z with W.T z + w0 = 0."""

    W: Array  # (D, c) orthonormal
    w0: Array  # (c,)

    @property
    def lifted(self) -> Array:
        """The normals with their offsets, (D + 1, c): lifted rows times these are distances."""
        return np.vstack([self.W, self.w0])


def as_flat(V: Array) -> Flat:
    """Return the affine subspace of the lifted normals V (D + 1, c), orthonormal columns.

    W = V[:-1] has c - 1 singular values 1 and one sqrt(1 - |w0|^2), which is small where the
    subspace is far away. That normal is left out where it is too far.
    """
    W, w0 = V[:-1], V[-1]
    if W.shape[1] == 0:
        return Flat(W, w0)
    U, s, Rt = np.linalg.svd(W, full_matrices=False)  # W.T z = -w0  <=>  U.T z = -(Rt w0) / s
    near = s > np.linalg.norm(w0) / FARTHEST
    return Flat(U[:, near], (Rt @ w0)[near] / s[near])


def without_offsets(B: Array) -> Array:
    """Return the directions (D, k) of lifted ones (D + 1, k), as unit columns."""
    B = B[:-1]
    norms = np.linalg.norm(B, axis=0)
    return B / np.where(norms > 0, norms, 1)
