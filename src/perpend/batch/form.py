"""The functional form: a stack of problems in, a `BatchSolution` out."""

import math
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np

from perpend._typing import Array, RandomState
from perpend.batch.decide import Problems, decide
from perpend.batch.descent import Limits, Rule, descend, descend_on_device
from perpend.batch.finish import Groups, begin, crossing
from perpend.exceptions import InputError, NumericalError
from perpend.geometry import as_generator, average_height, library, random_directions
from perpend.rows import stacks
from perpend.rows.stacks import like, on_cuda, to_host
from perpend.solvers import AutoStep, MBLSStep
from perpend.solvers.steps import resolution
from perpend.structure.constants import CLEAR_SCORE, EXACT, LEAST_SHARE
from perpend.structure.descents import score_ranks

PART_ON_HOST, PART_ON_DEVICE = 2**24, 2**30  # bytes of rows that are worked on together;
PER_PROBLEM = 2**20  # bytes that a problem takes besides its rows

RULES: dict[str, Rule] = {"auto": AutoStep(), "mbls": MBLSStep()}


class BatchSolution(NamedTuple):
    """The results of `dpcp_batch`; arrays of X's kind on X's device, real numbers in float64."""

    codimension: Array  # (p,) int
    normals: Array  # (p, D, k) orthonormal columns, zero beyond the codimension
    directions: Array  # (p, D, k) where the descents converged
    singular_values: Array  # (p, min(k, D)) of the directions
    objective: Array  # (p, k) sum of |x.b| over the rows
    n_iter: Array  # (p, k) int
    converged: Array  # (p, k) bool: before the iterations ran out
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
    on a GPU. It decides by the same scales, from what the descents propose alone; `clear` is a yes
    or no instead of a confidence. **Not looked at**, other than by `DPCP`: whether the rows on the
    subspace lie on two smaller ones, which layer of a slab is the finest (where all rows are near,
    and seem to be of two kinds, `clear` is False), and more normals than there are starts, whose
    number does not grow by itself. Codimension 0 is never returned: where there is no subspace,
    `clear` is False and the rest means nothing. The rows of every problem are taken to span the
    space: directions orthogonal to all of them count as normals like any other, and the descents
    end there first.

    Parameters
    ----------
    X : array or tensor of shape (p, n, D), float32 or float64
        NumPy or torch, on any device. Rows are scaled to unit norm. Problems with fewer rows are
        filled up with zero rows, which take no part.
    n_starts : int
        k, the number of descents for each problem; at least 1.5 times the codimension, better
        more.
    step : {"auto", "mbls"}
        The step rule: perpend's own, or the line search of the same group's releases.
    refine : bool
        Whether to finish by PCA of the probable inliers: without noise the normals are then exact
        to rounding. False is the published algorithm alone. On a GPU the descents only propose
        where a finish follows, and run in a low precision that knows its floor (about 1e-6);
        without a finish they run in float64.
    max_iter : int
        Most iterations of each descent.
    tol : float
        A descent with "auto" has converged when its next step would turn it by less.
    random_state : None, int, Generator or RandomState
        Seeds the starts, which are the same k directions for every problem: a problem has the same
        result alone and in company.
    starts : array of shape (p, D, k), optional
        Where the descents begin, instead of random directions.
    n_rows : array of int of shape (p,), optional
        The number of rows of each problem; those after them are not looked at.

    Returns
    -------
    BatchSolution
        `clear` is True where the descents show a clear rank below their number and, with `refine`,
        the scales choose the same codimension and have no doubt: so many rows on a subspace are no
        accident, the codimension is the same over a range of scales, and the rows are no single
        smooth cloud. Rows that occur several times count as often. Where a value of some column is
        frequent, nothing exact is clear.

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
    stacks.check_stack(X)
    _check(n_starts=n_starts, step=step, max_iter=max_iter, tol=tol)
    if starts is None:
        drawn = random_directions(as_generator(random_state), X.shape[2], n_starts).T
        B = np.array(np.broadcast_to(drawn, (len(X), *drawn.shape)))
    else:
        B = stacks.unit_directions(X, starts)
    count, eps = stacks.row_counts(X, n_rows), np.finfo(str(X.dtype).rpartition(".")[2]).eps
    limits = Limits(max_iter, max(tol, 8 * float(eps)), unseen=float(eps))
    each = 8 * X.shape[1] * X.shape[2] + PER_PROBLEM
    size = max(1, (PART_ON_DEVICE if on_cuda(X) else PART_ON_HOST) // each)
    parts = [slice(start, start + size) for start in range(0, len(X), size)]
    solve = partial(_solve, rule=RULES[step], refine=bool(refine), limits=limits)
    found = [solve(X[part], B[part], count[part], part.start) for part in parts]
    if len(found) == 1:
        return found[0]
    return BatchSolution(*(library(X).concatenate(all_) for all_ in zip(*found, strict=True)))


def _check(*, n_starts: int, step: Any, max_iter: int, tol: float) -> None:
    """Say what is wrong with the options, if anything is."""
    if not isinstance(step, str) or step not in RULES:
        raise InputError(f"step={step!r}; expected one of {sorted(RULES)}.")
    for name, value in (("n_starts", n_starts), ("max_iter", max_iter)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name}={value!r}; expected an int, at least 1.")
    if not isinstance(tol, Real) or not 0 < tol < 1:
        raise InputError(f"tol={tol!r}; expected an angle between 0 and 1.")


def _solve(
    X: Array, B: Array, count: Array, first: int, *, rule: Rule, refine: bool, limits: Limits
) -> BatchSolution:
    """Solve one part of the problems; `count` (p,) and B (p, k, D) are on the host."""
    (_, k, D), eps = B.shape, limits.unseen
    with stacks.workspace(X, k) as space:
        run = stacks.directly if space is None else space.run
        with np.errstate(invalid="ignore"):  # inf / inf; what is not finite is reported below
            own, rows, counts = run(stacks.unit_rows, stacks.cut(X, count))
        n = stacks.usable_rows(to_host(counts), D, first)
        if on_cuda(X):
            from perpend.kernels.cuda.stacks import plan

            kernels, low = plan(own, k, low_precision=refine)
            limits = limits._replace(low=low, tol=max(limits.tol, low))
            state = descend_on_device(own, like(X, B), rule, limits, kernels=kernels, space=space)
        else:
            state = descend(own, like(X, B), rule, limits)
        words = stacks.packed(state.B, state.f, state.chord, state.n_iter, state.converged)
        ends, f, chord, n_iter, converged = stacks.unpacked(words, (k, D), *[(k,)] * 4)
        if not np.all(np.isfinite(f)):
            raise NumericalError("The objective is not finite; please report it with X's scale.")

        _, s, basis = np.linalg.svd(ends, full_matrices=False)
        problems = Problems(rows, n, like(X, basis), k, max(200 * eps, 2.0**-26), run)
        heights, _ = run(stacks.evaluate, rows.X, problems.directions)
        levels = to_host(heights) / n[:, None]
        # Half the chord is the sine of half the angle.
        moved = np.where(np.isfinite(chord), 2 * np.arcsin(np.minimum(chord / 2, 1)), chord)
        floor = np.maximum(resolution(moved, converged > 0, limits.tol), max(limits.low, D * eps))
        low, high = np.median(f, axis=1) / n, average_height(D)
        rank = score_ranks(s, levels, low, high, floor=floor, rank=D)
        if refine:
            best = ends[np.arange(len(f)), np.argmin(f, axis=1)]
            (end, value, groups, *_), clear = decide(problems, basis, rank, best)
            # Rows on it exactly may be those that have values in common.
            exact = np.flatnonzero(clear & (groups.scale[:, 0] <= EXACT * problems.floor))
            if len(exact):
                clear[exact] &= ~to_host(_have_frequent_values(X[exact], rows.present[exact]))
        else:  # the directions as they are
            value, clear = rank.value, rank.score >= CLEAR_SCORE
            end = run(begin, rows, *problems.start(basis, value), False)
            groups = Groups(*(to_host(column) for column in end.groups))
        threshold = crossing(groups, value, D)
        labels = run(_labels, end.J2, rows.present, like(X, threshold**2))
        copy = partial(library(X).asarray, copy=True)  # replayed results are overwritten
        return BatchSolution(
            codimension=like(X, value),
            normals=copy(end.V).mT,
            directions=copy(state.B).mT,
            singular_values=like(X, s),
            objective=copy(state.f),
            n_iter=copy(state.n_iter),
            converged=like(X, (converged > 0) & (n_iter < limits.max_iter)),
            labels=copy(labels),
            threshold=like(X, threshold),
            gap=like(X, rank.gap),
            clear=like(X, clear),
        )


def _have_frequent_values(X: Array, present: Array) -> Array:
    """Say (p,) in which problems some column has one value in as many rows as a layer needs."""
    xp, (p, n, _) = library(X), X.shape
    x = stacks.ascending(xp.where(present[..., None] > 0, X, math.nan))
    apart = math.ceil(LEAST_SHARE * n)
    equal = stacks.double(x[:, apart:] == x[:, : n - apart])
    return xp.amax(equal.reshape(p, -1), axis=1) > 0


def _labels(J2: Array, present: Array, threshold2: Array) -> Array:
    return library(J2).where((threshold2[:, None] < J2) & (present > 0), -1, 1)
