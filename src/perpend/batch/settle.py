"""From the rank of the directions to an answer: the descents propose, the rows decide.

This is a short form of `perpend.codimension.decision`. A finish at fewer normals than there are
still finds the inliers, and their second moments show the true number; so two candidates are
finished, the rank of the directions and, where that is not convincing, the single direction of
smallest objective. From the better one the codimension climbs as long as the support grows.
"""

from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.batch.arrays import Run, directly, library, like, solve_positive, to_host, transposed
from perpend.batch.finish import Finished, Rows, finish, lifted, look
from perpend.batch.groups import Sizes, sizes, support

CLEAR = 4.5  # clearness of a gap at which DPCP is sure
LIKELY = 3.0  # and at which it is half sure
MAX_PROPOSALS = 16  # other codimensions that are tried


class Spectrum(NamedTuple):
    """The smallest second moments of the inliers, on the host."""

    value: Array  # (p,) the number of moments below the largest gap
    clearness: Array  # (p,) log of this gap over that of the next largest
    axes: Array  # (p, m, D) Ritz vectors, one a row, smallest moment first


class Candidate(NamedTuple):
    """A finished answer for each problem; all on the host but for `end`."""

    end: Finished
    value: Array  # (p,) codimension
    support: Array  # (p,)
    share: Array  # (p,) of inliers
    scale: Array  # (p,)
    seen: Spectrum


class Problems(NamedTuple):
    """The rows, what is known of them, and how functions of them are called."""

    rows: Rows
    n_rows: Array  # (p,) rows that are not zero, on the host
    directions: Array  # (p, m, D) orthonormal rows: where small moments are looked for
    eps: float  # precision of the rows as they were given
    run: Run

    def some(self, at: Array) -> "Problems":
        """Return some of the problems; their shapes are new, so nothing is replayed."""
        rows = Rows(self.rows.X[at], self.rows.present[at])
        return Problems(rows, self.n_rows[at], self.directions[at], self.eps, directly)

    @property
    def solving(self) -> Run:
        """How functions that solve equations are called: stacks of them can't be captured."""
        return self.run if len(self.n_rows) == 1 else directly

    def sizes(self, codimension: Array) -> Sizes:
        """Return the sizes that the two groups need; distances below 2^-26 are rounding."""
        return sizes(self.rows.X, codimension, self.n_rows, max(200 * self.eps, 2.0**-26))


def settle(problems: Problems, basis: Array, value: Array, best: Array) -> Candidate:
    """Choose codimension and normals; all arguments are on the host.

    The first candidate has the first `value` (p,) rows of the basis (p, m, D), the second one has
    `best` (p, 1, D).
    """
    answer = consider(problems, basis, value)
    (open_,) = np.nonzero(~convincing(answer))
    if len(open_) == 0:
        return answer
    copied: Candidate = _some(answer, np.arange(len(value)))  # replayed results are overwritten
    single = consider(problems.some(open_), best[open_], np.ones(len(open_), dtype=np.int64))
    _put(single, copied, open_, single.support > copied.support[open_])
    _climb(problems, copied, open_)
    return copied


def _climb(problems: Problems, answer: Candidate, open_: Array) -> None:
    """Try other codimensions for the problems `open_`, as long as that gives more support.

    A proposal that helps is followed by the first kind again, one that does not by the next kind.
    """
    kind = np.zeros(len(open_), dtype=np.int64)
    _, m, D = problems.directions.shape
    for _ in range(MAX_PROPOSALS):
        value, seen = answer.value[open_], _some(answer.seen, open_)
        gap = np.where(seen.clearness >= LIKELY, seen.value, value)
        kinds = np.stack([gap, 2 * value, value + 1, value - 1], axis=1)  # (open, 4)
        useful = (kinds != value[:, None]) & (kinds >= 1) & (kinds <= min(m, D - 1))
        useful &= np.arange(4) >= kind[:, None]
        go = useful.any(axis=1)
        open_, kind = open_[go], np.argmax(useful, axis=1)[go]
        if len(open_) == 0:
            return
        proposal = np.take_along_axis(kinds[go], kind[:, None], axis=1)[:, 0]
        challenger = consider(problems.some(open_), seen.axes[go], proposal)
        better = challenger.support > answer.support[open_]
        _put(challenger, answer, open_, better)
        kind = np.where(better, 0, kind + 1)


def convincing(answer: Candidate) -> Array:
    """Say which answers are no accident and have a clear gap in the inliers' moments."""
    agrees = answer.seen.value == answer.value
    return agrees & (answer.seen.clearness >= CLEAR) & (answer.support > 0)


def consider(problems: Problems, basis: Array, value: Array) -> Candidate:
    """Finish at the first `value` rows of the basis (p, m, D), and look at the inliers found."""
    V = like(problems.rows.X, leading(basis, value, problems.directions.shape[1]))
    known = problems.sizes(value)
    end = finish(problems.rows, V, known, problems.solving)
    words = to_host(problems.solving(_evidence, problems.rows, problems.directions, end, known))
    _, m, D = problems.directions.shape
    A, Z = words[:, : D * D].reshape(-1, D, D), words[:, D * D : -3].reshape(-1, D, m)
    gain, share, scale = words[:, -3:].T.copy()
    return Candidate(end, value.copy(), gain, share, scale, spectrum(A, Z, problems.eps))


def regard(problems: Problems, basis: Array, value: Array) -> Candidate:
    """Look at the first `value` rows of the basis (p, m, D) as they are, without a finish."""
    V = like(problems.rows.X, leading(basis, value, problems.directions.shape[1]))
    end = problems.run(look, problems.rows, V, problems.sizes(value))
    share, scale = (to_host(column)[:, 0] for column in end.groups)
    nothing = Spectrum(value, 0.0 * share, basis)
    return Candidate(end, value, 0.0 * share, share, scale, nothing)


def leading(basis: Array, value: Array, m: int) -> Array:
    """Return the first `value` (p,) rows of the basis, then zero rows up to m; on the host."""
    V = np.zeros((len(basis), m, basis.shape[2]))
    V[:, : basis.shape[1]] = basis
    return V * (np.arange(m) < value[:, None])[..., None]


def _evidence(rows: Rows, directions: Array, end: Finished, known: Sizes) -> Array:
    """Return all that the host must know, as one row of numbers for each problem."""
    xp = library(end.A)
    Z = solve_positive(lifted(end.A), transposed(directions))  # (p, D, m)
    gain = support(end.J2, rows.present, end.groups, known)
    p = len(gain)
    words = [end.A.reshape(p, -1), Z.reshape(p, -1), gain[:, None], *end.groups]
    return xp.concatenate(words, axis=1)


def spectrum(A: Array, Z: Array, eps: float) -> Spectrum:
    """Find the largest gap among the smallest eigenvalues of A (p, D, D), on the host.

    Z (p, D, m) is one inverse step away from the directions, and the Ritz values are those of its
    columns' space: moments below the gap are met to rounding, those above it only roughly, and no
    more is needed.
    """
    # Nearly parallel columns are the rule here; Householder's factors do not mind.
    Q = np.linalg.qr(Z)[0]
    values, vectors = np.linalg.eigh(transposed(Q) @ A @ Q)
    axes = transposed(Q @ vectors)
    if values.shape[1] == 1:
        return Spectrum(np.ones(len(values), dtype=np.int64), np.zeros(len(values)), axes)
    floor = 64 * eps * np.trace(A, axis1=1, axis2=2)[:, None]
    t = np.maximum(values, np.maximum(floor, np.finfo(float).tiny))
    ratios = np.log(t[:, 1:] / t[:, :-1])
    order = np.sort(ratios, axis=1)
    next_largest = order[:, -2] if order.shape[1] > 1 else 0.0
    # Neighbours differ by 20 % at random.
    clearness = order[:, -1] / np.maximum(next_largest, np.log(1.2))
    return Spectrum(np.argmax(ratios, axis=1) + 1, clearness, axes)


def _some(values: Any, at: Array) -> Any:
    """Return copies of the results of some problems."""
    if isinstance(values, tuple):
        return type(values)(*(_some(value, at) for value in values))
    return values[at]


def _put(part: Any, whole: Any, at: Array, which: Array) -> None:
    """Write those results of the problems `at` that are marked into the results of all."""
    for values, target in zip(part, whole, strict=True):
        if isinstance(values, tuple):
            _put(values, target, at, which)
        else:
            target[at[which]] = values[np.flatnonzero(which)]
