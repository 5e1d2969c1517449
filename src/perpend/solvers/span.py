"""The span of the rows: what is orthogonal to every row is a normal without any search."""

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.kernels import gram
from perpend.rows import RowSource


class RowSpan(NamedTuple):
    """Where the rows live. Subgradients never leave the span, so neither do descents in it."""

    basis: Array  # (D, R) orthonormal; the identity where the rows span everything
    rest: Array  # (D, D - R) orthonormal: orthogonal to every row
    moments: Array  # (D, D) sum of w x x.T
    axes: Array  # (D, R) principal axes, smallest second moment first
    variances: Array  # (R,) the second moments along them

    @property
    def rank(self) -> int:
        """The dimension of the span."""
        rank: int = self.basis.shape[1]
        return rank

    @property
    def n_idle_columns(self) -> int:
        """The number of columns that are zero or a multiple of an earlier one.

        They lower the rank of the rows, but say nothing about which rows belong together.
        """
        size = np.sqrt(np.diag(self.moments))
        active = size > 0
        scaled = self.moments[np.ix_(active, active)] / np.outer(size[active], size[active])
        multiples = np.triu(np.abs(scaled) > 1 - 1e-12, k=1)
        return int(np.sum(~active) + np.sum(np.any(multiples, axis=0)))


def row_span(rows: RowSource) -> RowSpan:
    """Find the span of the rows in one scan."""
    moments = rows.scan(gram).product
    variances, axes = np.linalg.eigh(moments)
    inside = variances > rank_tolerance(rows.dtype) * variances[-1]
    if not np.any(inside):
        raise InputError(
            "Every row of X is zero or has weight zero, so there is no direction to fit. "
            "Pass some rows that are not zero."
        )
    full = bool(np.all(inside))
    return RowSpan(
        basis=np.eye(len(moments)) if full else axes[:, inside],
        rest=_canonical(axes[:, ~inside]),
        moments=moments,
        axes=axes[:, inside],
        variances=variances[inside],
    )


def _canonical(V: Array) -> Array:
    """Return an orthonormal basis that depends on the span of V (D, m) alone.

    Within the null space of the moments, rounding chooses the eigenvectors. A caller who wants some
    of them gets those next to the coordinate axes that lie farthest inside.
    """
    if V.shape[1] == 0:
        return V
    Q, R, _ = linalg.qr(V @ V.T, pivoting=True)
    m = V.shape[1]
    return Q[:, :m] * np.where(np.diag(R)[:m] < 0, -1.0, 1.0)


def rank_tolerance(dtype: Any) -> float:
    """Return the eigenvalue, relative to the largest, below which second moments are rounding."""
    return 64 * float(np.finfo(dtype).eps)
