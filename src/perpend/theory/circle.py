r"""The statistics of rows in the plane, exactly.

As b turns, the signs of x_i.b change only where b is orthogonal to a row. Between two such
directions the subgradient g is constant, so there are only n pieces:

- f(b) = g.b is concave in the angle on a piece: the least f is at an end of a piece;
- the largest f is the largest \|g\|;
- the part of g orthogonal to b is largest at an end of a piece, as g.b > 0 inside.
"""

from typing import NamedTuple

import numpy as np

from perpend._typing import Array


class CircleStatistics(NamedTuple):
    """Least and largest mean height, and the largest tangent part of the mean subgradient."""

    c_min: float  # least mean height
    c_max: float  # largest mean height
    eta: float  # largest tangent part of the mean subgradient


def circle_statistics(X: Array) -> CircleStatistics:
    """Return c_min, c_max and eta of unit rows X (n, 2) by going once round the circle.

    Parameters
    ----------
    X : array of shape (n, 2)
        Rows of norm one.

    Returns
    -------
    CircleStatistics

    Examples
    --------
    >>> [round(value, 4) for value in circle_statistics(np.eye(2))]
    [0.5, 0.7071, 0.5]
    """
    n = len(X)
    ends = np.sort((np.arctan2(X[:, 1], X[:, 0]) + np.pi / 2) % np.pi)  # b is orthogonal to a row
    # The row that belongs to an end, with the sign that it has before b gets there.
    Y = np.column_stack([np.sin(ends), -np.cos(ends)])
    passed = np.cumsum(Y, axis=0)
    g = passed[-1] - 2 * passed  # (n, 2): piece j lies between the ends j and j + 1
    upper = np.append(ends[1:], ends[0] + np.pi)
    lowest = np.sum(g * _direction(ends), axis=1)
    tangent = [np.sum(g * _direction(angle + np.pi / 2), axis=1) for angle in (ends, upper)]
    return CircleStatistics(
        c_min=float(np.min(np.abs(lowest))) / n,
        c_max=float(np.max(np.linalg.norm(g, axis=1))) / n,
        eta=float(np.max(np.abs(tangent))) / n,
    )


def _direction(angle: Array) -> Array:
    return np.column_stack([np.cos(angle), np.sin(angle)])
