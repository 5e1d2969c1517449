"""Values that rows have in common by chance: in counts, grades and marks, and zeros.

Rows whose values are few lie exactly on many subspaces, as those with 3 in the first column do, or
those whose third column is one more than the first. A value that several rows have is known up to
half of the way to the next one: that is its cell. So what is exact must also be seen where every
such value is anywhere in its cell. A single value can be frequent among others that are not, as
zero is among amounts of money. It makes no group of its own if others are as frequent.
"""

import numpy as np

from perpend._typing import Array
from perpend.structure import constants as k
from perpend.structure.cloud import Cloud
from perpend.structure.settle import Candidate

MATTERS = 100.0  # times rounding: a column with less of a normal takes no part


def may_be_coincidence(cloud: Cloud, candidate: Candidate) -> bool:
    """Say whether most rows on an exact subspace have values there that other rows have as well.

    A row whose value in a single column that matters is its own is there for another reason. And
    what nearly all rows have in common is no coincidence, as a column that hardly varies.
    """
    if candidate.n_members > k.ALL_ROWS * cloud.n:
        return False
    B = np.eye(cloud.D) if cloud.basis is None else cloud.basis
    weight = np.linalg.norm(B @ candidate.axes.A[:, : candidate.c], axis=1)
    X, rounding = _columns(cloud)
    near = candidate.threshold >= candidate.J
    common = near.copy()
    for x in X.T[weight > MATTERS * cloud.relative_floor]:
        of = _values(x, rounding)
        shared = np.bincount(of)[of] > 1
        common &= shared
        # In a column of measurements, other rows have values of their own.
        if 2 * np.sum(shared & ~near) < np.sum(~near) or 2 * np.sum(common) <= np.sum(near):
            return False
    return bool(np.any(near))


def blurred(cloud: Cloud, rng: np.random.Generator) -> Cloud:
    """Return the cloud with every value anywhere in its cell, which ends half-way to the next."""
    X, rounding = _columns(cloud)
    for j, x in enumerate(X.T):
        of = _values(x, rounding)
        n = np.bincount(of)
        value = np.bincount(of, x) / n
        gap = np.diff(value, prepend=-np.inf, append=np.inf)
        half = np.minimum(gap[1:], gap[:-1]) / 2
        cell = np.where(np.isfinite(half) & (n > 1), half, 0.0)
        X[:, j] += rng.uniform(-1, 1, len(x)) * cell[of]
    Y = X if cloud.basis is None else X @ cloud.basis
    if not cloud.affine:  # only directions matter: rows stay as long as they were
        before, now = (np.linalg.norm(A, axis=1) for A in (cloud.X, Y))
        Y *= (before / np.maximum(now, np.finfo(float).tiny))[:, None]
    how = {"weight": cloud.weight, "share": cloud.share, "lengths": cloud.lengths}
    new = Cloud(Y, affine=cloud.affine, floor=cloud.relative_floor, **how)
    new.n_outside, new.basis = cloud.n_outside, cloud.basis
    return new


def frequent_values(cloud: Cloud, candidate: Candidate) -> int:
    """Return how many columns have one value on the subspace, if others are as frequent elsewhere.

    That is 0 where other columns tell the members as well.
    """
    B = np.eye(cloud.D) if cloud.basis is None else cloud.basis
    size = np.linalg.norm(B, axis=1)
    inside = np.linalg.norm(B @ candidate.axes.A[:, : candidate.c], axis=1)
    own = (size > 0) & (inside > np.sqrt(1 - k.SAME_ANGLE**2) * size)
    if not np.any(own) or np.linalg.matrix_rank(B[own]) < candidate.c:
        return 0
    X, rounding = _columns(cloud)
    near, here, elsewhere = candidate.threshold >= candidate.J, 1.0, 0.0
    for x, is_own in zip(X.T, own, strict=True):
        of = _values(x, rounding)
        share = np.bincount(of) / len(x)
        if is_own:
            most = int(np.argmax(np.bincount(of[near], minlength=len(share))))
            here, share[most] = min(here, float(share[most])), 0.0
        elsewhere = max(elsewhere, float(np.max(share)))
    is_rare = here < k.LEAST_SHARE or elsewhere < k.AS_GOOD * here
    return 0 if is_rare else candidate.c


def _columns(cloud: Cloud) -> tuple[Array, Array]:
    """Return the rows (n, D') in the columns of the data, up to shift and scale, and rounding."""
    X = cloud.X * (cloud.lengths / np.max(cloud.lengths))[:, None]  # of any size: no overflow
    rounding = k.EXACT * cloud.relative_floor * np.linalg.norm(X, axis=1)
    return (X.copy() if cloud.basis is None else X @ cloud.basis.T), rounding


def _values(x: Array, rounding: Array) -> Array:
    """Return the number of each row's value (n,), counted from the smallest."""
    order, of = np.argsort(x, kind="stable"), np.empty(len(x), dtype=int)
    of[order] = np.cumsum(np.diff(x[order], prepend=-np.inf) > rounding[order]) - 1
    return of
