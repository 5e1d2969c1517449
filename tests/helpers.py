"""What tests share: assertions, which raise and never return a verdict, and rows that count."""

from collections import Counter

import numpy as np


def assert_same_subspace(A, B, tol=1e-10):
    """Two row bases span the same subspace: the sine of the largest angle is at most `tol`.

    Bases themselves are never compared, as sign and rotation are arbitrary.
    """
    A, B = np.atleast_2d(np.asarray(A, float)), np.atleast_2d(np.asarray(B, float))
    assert A.shape == B.shape, f"bases of shapes {A.shape} and {B.shape}"
    if A.shape[0] == 0:
        return
    A, B = np.linalg.qr(A.T)[0], np.linalg.qr(B.T)[0]
    sine = np.linalg.norm(B - A @ (A.T @ B), 2)
    assert sine <= tol, f"sine of the largest angle is {sine:.2e}, more than {tol:.2e}"


def assert_orthonormal_rows(A, tol=1e-12):
    """The rows are unit vectors, orthogonal to one another."""
    A = np.asarray(A)
    np.testing.assert_allclose(A @ A.T, np.eye(A.shape[0]), rtol=0, atol=tol)


class CountingRows:
    """A row source that counts the scans and floating-point operations it is asked for."""

    def __init__(self, rows):
        self._rows = rows
        self.n_scans = Counter()
        self.flops = 0.0
        self.n_subsets = 0

    def __getattr__(self, name):
        return getattr(self._rows, name)

    def scan(self, kernel, *params, **options):
        n, D = self._rows.shape
        self.n_scans[kernel.__name__] += 1
        self.flops += n * flops_per_row(kernel.__name__, D, params)
        return self._rows.scan(kernel, *params, **options)

    def subset(self, indices):
        self.n_subsets += 1
        return self._rows.subset(indices)


def flops_per_row(kernel, D, params):
    """What a kernel costs; a gram matrix counts in full, although half of it would do."""
    columns = params[0].shape[1] if params and np.ndim(params[0]) == 2 else 1
    return {
        "l1_objective_and_gradient": 4 * D * columns,
        "l1_objective": 2 * D * columns,
        "distances": 2 * D * columns,
        "grouped_distances": 2 * D * columns,
        "heights": 2 * D,
        "gram": 2 * D * D,
        "weighted_gram": 2 * D * D,
        "distance_weighted_gram": 2 * D * (D + columns),
    }[kernel]
