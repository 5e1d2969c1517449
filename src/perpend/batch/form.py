"""The functional form: a stack of problems in, a `BatchSolution` out."""

from typing import Any, Literal, NamedTuple

import numpy as np

from perpend._typing import Array, RandomState
from perpend.batch import device
from perpend.batch.arrays import directly, double, library, like, on_cuda, to_host, transposed
from perpend.batch.descent import Limits, Rule, Starts, descend
from perpend.batch.device import workspace
from perpend.batch.given import RULES, check, cut, directions, row_counts, unit_rows, usable_rows
from perpend.batch.groups import crossing
from perpend.batch.rank import heights, rank_of_directions, right_singular
from perpend.batch.settle import Problems, convincing, regard, settle
from perpend.codimension.confidence import CLEAR_SCORE
from perpend.exceptions import NumericalError

PART_ON_HOST, PART_ON_DEVICE = 2**24, 2**30  # bytes of rows that are worked on together;
PER_PROBLEM = 2**20  # bytes that a problem takes besides its rows


class BatchSolution(NamedTuple):
    """What `dpcp_batch` found; arrays of X's kind on X's device, real numbers in float64."""

    codimension: Array  # (p,) int
    normals: Array  # (p, D, k) orthonormal columns, zero beyond the codimension
    directions: Array  # (p, D, k) where the descents came to rest
    singular_values: Array  # (p, min(k, D)) of the directions
    objective: Array  # (p, k) sum of |x.b| over the rows
    n_iter: Array  # (p, k) int
    converged: Array  # (p, k) bool: at rest before the iterations ran out
    labels: Array  # (p, n) +1 inliers, -1 outliers; +1 for rows that are zero
    threshold: Array  # (p,) the distance that separates them
    gap: Array  # (p,) ratio of the singular values across the codimension
    clear: Array  # (p,) bool: whether the evidence for the codimension was clear


def dpcp_batch(
    X: Array,
    *,
    n_starts: int = 16,
    step: Literal["auto", "mbls"] = "auto",
    refine: bool = True,
    max_iter: int = 1000,
    tol: float = 1e-9,
    random_state: RandomState = None,
    starts: Array | None = None,
    n_rows: Array | None = None,
) -> BatchSolution:
    """Recover the subspaces of many problems of equal shape at once, codimensions unknown.

    This is the functional form of `perpend.DPCP` for stacks of problems, and for single small ones
    on a GPU. It finds codimension, normals and labels, but **the confidence of DPCP, its
    certificate, is not computed here**: `clear` is a yes or no from shorter evidence. The number
    of starts does not grow by itself, and codimension 0 is never an answer: where there is no
    subspace, `clear` is False and the rest means nothing. The rows of every problem are taken to
    span the space: directions orthogonal to all of them count as normals like any other, and the
    descents end there first.

    Parameters
    ----------
    X : array or tensor of shape (p, n, D), float32 or float64
        NumPy or torch, on any device. Rows are scaled to unit norm. Problems with fewer rows are
        filled up with zero rows, which take no part.
    n_starts : int
        k, the number of descents for each problem; at least 1.5 times the codimension, better
        more.
    step : {"auto", "mbls"}
        The step rule: perpend's own, or the line search of the authors' releases.
    refine : bool
        Whether to finish by PCA of the probable inliers: without noise the normals are then exact
        to rounding. False is the published algorithm alone. On a GPU the descents only propose
        where a finish follows, and run in a low precision that knows its floor (about 1e-6);
        without a finish they run in float64.
    max_iter : int
        Most iterations of each descent.
    tol : float
        A descent with "auto" rests when its next step would turn it by less than this angle.
    random_state : None, int, Generator or RandomState
        Seeds the starts, which are the same k directions for every problem: a problem has the same
        answer alone and in company.
    starts : array of shape (p, D, k), optional
        Where the descents begin, instead of random directions.
    n_rows : array of int of shape (p,), optional
        The number of rows of each problem; those after them are not looked at.

    Returns
    -------
    BatchSolution
        `clear` is True where the descents show a clear rank below their number and, with `refine`,
        the inliers' second moments have a clear gap at the same codimension and the rows say more
        for the subspace than accidents would. Rows that occur several times count as often.

    Examples
    --------
    >>> import numpy as np
    >>> from perpend.batch import dpcp_batch
    >>> from perpend.datasets import make_subspace
    >>> data = [make_subspace(n_features=12, codimension=c, random_state=c) for c in (1, 2, 3)]
    >>> found = dpcp_batch(np.stack([problem.X for problem in data]), random_state=0)
    >>> found.codimension
    array([1, 2, 3])
    >>> bool(np.all(found.labels == np.stack([problem.y for problem in data])))
    True
    """
    xp = library(X)
    check(X, xp, n_starts=n_starts, step=step, max_iter=max_iter, tol=tol)
    B = directions(X, starts, n_starts, random_state)
    count = row_counts(X, n_rows)
    options = _Options(RULES[step], bool(refine), max_iter, tol)
    parts = [
        _solve(X[part], B[part], count[part], options, part.start)
        for part in _parts(X, PART_ON_DEVICE if on_cuda(X) else PART_ON_HOST)
    ]
    if len(parts) == 1:
        return parts[0]
    return BatchSolution(*(xp.concatenate(values) for values in zip(*parts, strict=True)))


class _Options(NamedTuple):
    rule: Rule
    refine: bool
    max_iter: int
    tol: float


def _solve(X: Array, B: Array, count: Array, options: _Options, first: int) -> BatchSolution:
    """Solve one part of the problems; `count` (p,) and B (p, k, D) are on the host."""
    with workspace(X, B.shape[1]) as space:
        run = directly if space is None else space.run
        eps = float(np.finfo(str(X.dtype).rpartition(".")[2]).eps)
        with np.errstate(invalid="ignore"):  # inf / inf; what is not finite is reported below
            own, rows, counts = run(unit_rows, cut(X, count))
        n = usable_rows(to_host(counts), X.shape[2], first)
        state, limits = _descents(own, like(X, B), options, eps, space)
        host = _on_host(state)
        if not np.all(np.isfinite(host.f)):
            raise NumericalError("The objective is not finite; please report it with X's scale.")

        basis, s = right_singular(state.B, host.B)
        axes = like(X, basis)
        levels = to_host(run(heights, rows.X, axes)) / n[:, None]
        floor = np.maximum(_resolution(host, limits), X.shape[2] * eps)
        rank = rank_of_directions(basis, s, levels, np.median(host.f, axis=1) / n, floor)
        problems = Problems(rows, n, axes, eps, run)
        if options.refine:
            answer = settle(problems, basis, rank.value, _best(host))
            clear = convincing(answer) & (answer.value == rank.value)
        else:
            answer = regard(problems, basis, rank.value)
            clear = np.ones(len(n), dtype=bool)
        threshold = crossing(answer.share, answer.scale, answer.value, X.shape[2])
        labels = run(_labels, answer.end.J2, rows.present, like(X, threshold**2))
        return BatchSolution(
            codimension=like(X, answer.value),
            normals=transposed(_padded(answer.end.V, B.shape[1])),
            directions=transposed(_copy(state.B)),
            singular_values=like(X, s),
            objective=_copy(state.f),
            n_iter=_copy(state.n_iter),
            converged=like(X, host.resting & (host.n_iter < options.max_iter)),
            labels=_copy(labels),
            threshold=like(X, threshold),
            gap=like(X, rank.gap),
            clear=like(X, clear & ~rank.saturated & (rank.score >= CLEAR_SCORE)),
        )


def _descents(
    X: Array, B: Array, options: _Options, eps: float, space: Any
) -> tuple[Starts, Limits]:
    """Descend where the rows are, with the kernels that are there; say which limits held."""
    limits = Limits(options.max_iter, max(options.tol, 8 * eps), eps)
    if not on_cuda(X):
        return descend(X, B, options.rule, limits), limits
    kernels, low = device.plan(X, B.shape[1], low_precision=options.refine)
    limits = limits._replace(low=low, tol=max(limits.tol, low))
    state = device.descend_on_device(X, B, options.rule, limits, kernels=kernels, space=space)
    return state, limits


def _on_host(state: Starts) -> Starts:
    """Return the state on the host; from a device it comes in one piece."""
    xp = library(state.B)
    if xp is np:
        return state
    whole = [state.B] + [
        double(values)[..., None] for values in (state.f, state.chord, state.n_iter, state.resting)
    ]
    words = to_host(xp.concatenate(whole, axis=2))
    f, chord, n_iter, resting = np.moveaxis(words[..., -4:], 2, 0)
    return state._replace(
        B=words[..., :-4], f=f, chord=chord, n_iter=n_iter.astype(int), resting=resting > 0
    )


def _labels(J2: Array, present: Array, threshold2: Array) -> Array:
    far = (threshold2[:, None] < J2) & (present > 0)
    return library(J2).where(far, -1, 1)


def _copy(values: Array) -> Array:
    return values.copy() if isinstance(values, np.ndarray) else values.clone()


def _best(state: Starts) -> Array:
    """Return the direction of smallest objective of each problem, (p, 1, D)."""
    best = np.argmin(state.f, axis=1)
    return state.B[np.arange(len(best)), best][:, None]


def _resolution(state: Starts, limits: Limits) -> Array:
    """Return for each problem the largest angle of a last step."""
    # Half the chord is the sine of half the angle.
    angle = 2 * np.arcsin(np.clip(state.chord / 2, None, 1.0))
    # A start that rests without having moved was there already, as far as steps can tell.
    never = np.where(state.resting, limits.tol, 1.0)
    angle = np.where(np.isfinite(state.chord), angle, never)
    return np.maximum(np.max(np.minimum(angle, 1.0), axis=1), limits.low)


def _padded(V: Array, k: int) -> Array:
    """Return a copy of V (p, m, D) with zero rows up to k: m is smaller where k exceeds D."""
    xp = library(V)
    zeros = xp.zeros_like(V[:, :1])
    return xp.concatenate([V] + [zeros] * (k - V.shape[1]), axis=1)


def _parts(X: Array, budget: int) -> list[slice]:
    """Return slices of problems that stay within the budget of bytes."""
    p, n, D = X.shape
    size = max(1, budget // (8 * n * D + PER_PROBLEM))
    return [slice(start, start + size) for start in range(0, p, size)]
