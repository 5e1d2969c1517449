"""Watches a descent without changing it: the angle to the true complement after every iteration.

A solver tells its callback only the objective. But its rows see every trial, and its step rule says
which of them are accepted. Rows and a rule that note this and pass everything on therefore see the
whole path, at the cost of one small product for each scan.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array, Kernel
from perpend.kernels import distance_and_gradient, inverse_distance_gram, l1_objective_and_gradient
from perpend.methods.dpcp_irls import dpcp_irls
from perpend.rows import ArrayRows, Kept, Scan
from perpend.solvers import Directions, Outcome, StepRule
from perpend.solvers.steps import Search

Measure = Callable[[Array], Array]
KERNELS = l1_objective_and_gradient, distance_and_gradient, inverse_distance_gram


class Path(NamedTuple):
    """The angles of one start."""

    tangents: Array  # (n_iter + 1,) tan of the angle, the start's first
    scans: Array  # (n_iter + 1,) passes over the rows until then, refused trials with them


class _WatchedRows(ArrayRows):
    """Measures what each scan of a descent is given."""

    def __init__(self, X: Array, measure: Measure) -> None:
        super().__init__(X)
        self._measure = measure
        self.measured: list[Array] = []

    def scan(
        self, kernel: Kernel, *params: Any, using: tuple[Kept, ...] = (), keep: bool = False
    ) -> Scan:
        if kernel in KERNELS:
            self.measured.append(self._measure(params[0]))
        return super().scan(kernel, *params, using=using, keep=keep)


class _WatchedRule(StepRule):
    """Leaves everything to another rule, and notes what was measured at accepted trials.

    It tries one step size at a time, also where the other rule looks ahead.
    """

    def __init__(self, rule: StepRule, rows: _WatchedRows, max_iter: int) -> None:
        self._rule, self._rows, self._max_iter = rule, rows, max_iter
        self._running = np.zeros(0, dtype=int)  # starts that still move
        self.seen: list[list[tuple[float, int]]] = []

    def search(self, B: Array, g: Array, axis: int = 0) -> Search:
        return self._rule.search(B, g, axis)

    def first(self, f: Array) -> Array:
        self._running, self.seen = np.arange(f.size), [[] for _ in range(f.size)]
        self._note(np.ones(f.size, dtype=bool))
        return self._rule.first(f)

    def accepts(self, f_trial: Array, f: Array, mu: Array, slope: Array, n_iter: Array) -> Array:
        accepted = self._rule.accepts(f_trial, f, mu, slope, n_iter)
        self._note(accepted)
        return accepted

    def following(self, mu: Array, outcome: Outcome) -> Array:
        return self._rule.following(mu, outcome)

    def at_rest(self, mu: Array, outcome: Outcome, tol: float) -> Array:
        rest = self._rule.at_rest(mu, outcome, tol)
        self._running = self._running[~(rest | (outcome.n_iter >= self._max_iter))]
        return rest

    def _note(self, accepted: Array) -> None:
        tangents, n_scans = self._rows.measured[-1], len(self._rows.measured)
        for start, tangent in zip(self._running[accepted], tangents[accepted], strict=True):
            self.seen[start].append((tangent, n_scans))


def watch(
    solver: Callable[..., Directions],
    X: Array,
    B: Array,
    measure: Measure,
    *,
    rule: StepRule,
    max_iter: int,
    tol: float,
) -> tuple[Directions, list[Path]]:
    """Run `psgm` or `riemannian` on unit rows X and return its end, and the path of every start.

    ``measure(B)`` returns one number for each start; a frame is one.
    """
    rows = _WatchedRows(X, measure)
    watched = _WatchedRule(rule, rows, max_iter)
    end = solver(rows, B, rule=watched, max_iter=max_iter, tol=tol)
    return end, [_path(seen) for seen in watched.seen]


def watch_irls(X: Array, codimension: int, measure: Measure, *, max_iter: int, tol: float) -> Path:
    """Run DPCP-IRLS at a given codimension; every scan is an iteration."""
    rows = _WatchedRows(X, measure)
    rng = np.random.default_rng(0)  # only weighs the estimate, which is not used here
    dpcp_irls(rows, codimension=codimension, max_iter=max_iter, tol=tol, rng=rng)
    return _path([(measured[0], n + 1) for n, measured in enumerate(rows.measured)])


def _path(seen: list[tuple[float, int]]) -> Path:
    tangents, scans = np.array(seen).T
    return Path(tangents, scans.astype(int))


def at_iterations(paths: list[Path], iterations: Array) -> Array:
    """Return the tangents (k, len(iterations)); after its end a path keeps its last one.

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
