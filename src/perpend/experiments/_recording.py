"""Watches a descent without changing it: the angle to the true complement after every iteration.

A solver tells its callback only the objective. But it asks its step rule for a direction at every
accepted iterate, and its rows for a scan at every trial. A rule and rows that look on and pass
everything through therefore see the whole path, at the cost of one small product an iteration.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array, Kernel
from perpend.rows import ArrayRows, Kept, RowSource, Scan, row_span
from perpend.solvers import Directions, Outcome, StepRule, psgm, riemannian, spectral_starts
from perpend.solvers.steps import Search

Measure = Callable[[Array], Array]


class Path(NamedTuple):
    """The angles of one start."""

    tangents: Array  # (n_iter + 1,) tan of the angle, the start's first
    scans: Array  # (n_iter + 1,) passes over the rows until then, refused trials with them


class _PassedOn:
    """A rule that asks another one everything."""

    def __init__(self, rule: StepRule) -> None:
        self._rule = rule

    def search(self, B: Array, g: Array) -> Search:
        return self._rule.search(B, g)

    def first(self, f: Array) -> Array:
        return self._rule.first(f)

    def accepts(self, f_trial: Array, f: Array, mu: Array, slope: Array, n_iter: Array) -> Array:
        return self._rule.accepts(f_trial, f, mu, slope, n_iter)

    def following(self, mu: Array, outcome: Outcome) -> Array:
        return self._rule.following(mu, outcome)

    def at_rest(self, mu: Array, outcome: Outcome, tol: float) -> Array:
        return self._rule.at_rest(mu, outcome, tol)


class _WatchedRule(_PassedOn):
    """Notes the iterates of `psgm`, which asks for a direction at all that have been accepted."""

    def __init__(self, rule: StepRule, measure: Measure, max_iter: int) -> None:
        super().__init__(rule)
        self._measure, self._max_iter = measure, max_iter
        self._running = np.zeros(0, dtype=int)  # starts that still move
        self._accepted = np.zeros(0, dtype=bool)  # which of these have just moved
        self._n_scans = 1
        self.seen: list[list[tuple[float, int]]] = []

    def search(self, B: Array, g: Array) -> Search:
        if not self.seen:  # the starts themselves
            n_starts = B.shape[1]
            self.seen = [[] for _ in range(n_starts)]
            self._running, self._accepted = np.arange(n_starts), np.ones(n_starts, dtype=bool)
        moved = self._running[self._accepted]
        for start, tangent in zip(moved, self._measure(B).tolist(), strict=True):
            self.seen[start].append((tangent, self._n_scans))
        return super().search(B, g)

    def accepts(self, f_trial: Array, f: Array, mu: Array, slope: Array, n_iter: Array) -> Array:
        self._n_scans += 1
        self._accepted = super().accepts(f_trial, f, mu, slope, n_iter)
        return self._accepted

    def at_rest(self, mu: Array, outcome: Outcome, tol: float) -> Array:
        rest = super().at_rest(mu, outcome, tol)
        self._running = self._running[~(rest | (outcome.n_iter >= self._max_iter))]
        return rest


def watch_psgm(
    rows: RowSource, B: Array, measure: Measure, *, rule: StepRule, max_iter: int, tol: float
) -> tuple[Directions, list[Path]]:
    """Run `psgm` and return its end, and the path of every start.

    Parameters
    ----------
    rows, B, rule, max_iter, tol
        As for `perpend.solvers.psgm`.
    measure : callable
        ``measure(B)`` returns one number for each column of B (D, k).
    """
    watched = _WatchedRule(rule, measure, max_iter)
    end = psgm(rows, B, rule=watched, max_iter=max_iter, tol=tol)
    return end, [_path(seen) for seen in watched.seen]


class _WatchedRows(ArrayRows):
    """Notes the frame V that each scan with `kernel` is given."""

    def __init__(self, X: Array, kernel: Kernel, measure: Measure) -> None:
        super().__init__(X)
        self._kernel, self._measure = kernel, measure
        self.n_scans = 0
        self.seen: list[tuple[float, int]] = []

    def scan(
        self, kernel: Kernel, *params: Any, using: tuple[Kept, ...] = (), keep: bool = False
    ) -> Scan:
        if kernel is self._kernel:
            self.n_scans += 1
            self.seen.append((float(np.max(self._measure(params[0]))), self.n_scans))
        return super().scan(kernel, *params, using=using, keep=keep)


class _FrameRule(_PassedOn):
    """Takes back what the rows have noted where the rule refuses the trial."""

    def __init__(self, rule: StepRule, rows: _WatchedRows) -> None:
        super().__init__(rule)
        self._rows = rows

    def accepts(self, f_trial: Array, f: Array, mu: Array, slope: Array, n_iter: Array) -> Array:
        accepted = super().accepts(f_trial, f, mu, slope, n_iter)
        if not accepted[0]:
            self._rows.seen.pop()
        return accepted


def watch_rsgm(
    X: Array, codimension: int, measure: Measure, *, rule: StepRule, max_iter: int, tol: float
) -> Path:
    """Run RSGM, told the codimension, from its spectral start; the frame has one path.

    `measure` returns one number for a frame (D, c). The rows of X have norm one.
    """
    from perpend.kernels import distance_and_gradient

    rows = _WatchedRows(X, distance_and_gradient, measure)
    start = spectral_starts(row_span(rows), codimension)
    riemannian(rows, start, rule=_FrameRule(rule, rows), max_iter=max_iter, tol=tol)
    return _path(rows.seen)


def watch_irls(X: Array, codimension: int, measure: Measure, *, max_iter: int, tol: float) -> Path:
    """Run DPCP-IRLS, told the codimension; every scan is an iteration."""
    from perpend.kernels import inverse_distance_gram
    from perpend.methods.dpcp_irls import dpcp_irls

    rows = _WatchedRows(X, inverse_distance_gram, measure)
    rng = np.random.default_rng(0)  # only weighs the answer, which is not looked at
    dpcp_irls(rows, codimension=codimension, max_iter=max_iter, tol=tol, rng=rng)
    return _path(rows.seen)


def _path(seen: list[tuple[float, int]]) -> Path:
    tangents, scans = np.array(seen).T
    return Path(tangents, scans.astype(int))


def at_iterations(paths: list[Path], iterations: Array) -> Array:
    """Return the tangents (k, len(iterations)); whoever rests stays where it is.

    >>> at_iterations([Path(np.array([3.0, 1.0]), np.array([1, 2]))], np.array([0, 1, 5]))
    array([[3., 1., 1.]])
    """
    return np.array(
        [path.tangents[np.minimum(iterations, len(path.tangents) - 1)] for path in paths]
    )


def first_below(paths: list[Path], level: float) -> tuple[Array, Array]:
    """Return the iterations and the scans (k,) from which on each path stays below; else NaN.

    >>> path = Path(np.array([3.0, 0.1, 2.0, 0.1]), np.array([1, 3, 4, 5]))
    >>> first_below([path], 1.0)
    (array([3.]), array([5.]))
    """
    found = []
    for path in paths:
        above = np.flatnonzero(path.tangents >= level)
        k = above[-1] + 1 if above.size else 0
        found.append((k, path.scans[k]) if k < len(path.tangents) else (np.nan, np.nan))
    iterations, scans = np.array(found, dtype=float).T
    return iterations, scans
