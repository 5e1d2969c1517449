"""Affine subspaces by a method that knows only linear ones: it sees lifted rows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.rows import RowSource, row_span
from perpend.solvers import Solution
from perpend.solvers.loop import Callback
from perpend.structure.checks import SURE, Verdict
from perpend.structure.confirm import STEPS
from perpend.structure.flats import (
    AffineFit,
    Flat,
    as_fit,
    as_flat,
    lifted,
    members_among,
    near_view,
)
from perpend.structure.views import View, find_views, whole_view


class _Answer(NamedTuple):
    view: View
    solution: Solution
    n_rows: float  # weight of the inliers

    @property
    def weight(self) -> tuple[bool, float]:
        """By what views are compared: the surer one with normals counts, or the larger."""
        sure = self.solution.confidence >= SURE and self.solution.normals.shape[1] > 0
        return sure, self.n_rows


def solve_lifted(
    X: Array,
    weight: Array | None,
    solve: Callable[[RowSource], Solution],
    *,
    normalize: bool,
    refine: bool,
    n_jobs: int,
    fused: bool,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> AffineFit:
    """Let a method find the affine subspace of the inliers among the rows of X (n, D).

    It sees lifted rows: unit rows if `normalize`. Without `refine` its answer is brought back as it
    is; with it, it turns to its members in a few steps.
    """

    def answer(view: View) -> _Answer:
        seen = lifted(X, weight, view, n_jobs=n_jobs, unit_rows=normalize, fused=fused)
        solution = solve(seen.rows)
        share = 1.0 if solution.groups is None else solution.groups.share
        return _Answer(view, solution, share * seen.rows.total_weight)

    answers = [answer(view) for view in find_views(X, weight, rng)]
    if len(answers) > 1 and not any(one.weight[0] for one in answers):
        answers = [answer(whole_view(X, weight, rng))]
    view, found, _ = max(answers, key=lambda one: one.weight)
    flat = as_flat(found.normals)
    seen = lifted(X, weight, view, n_jobs=n_jobs, fused=fused)
    n_outside = min(row_span(seen.rows).n_outside, flat.W.shape[1])
    steps = STEPS if refine else 0
    first = members_among(seen, flat, None, n_outside=n_outside, steps=steps, callback=callback)
    # Once more from the members' own place, where they have all their digits.
    centre = view.centre + view.scale * first.mean
    spread = view.scale * float(np.sqrt(np.mean(first.variances)))
    seen = lifted(X, weight, near_view(X, centre, spread, view), n_jobs=n_jobs, fused=fused)
    flat = Flat(first.flat.W, np.zeros(first.flat.W.shape[1]))
    members = members_among(seen, flat, None, n_outside=n_outside, steps=steps, callback=callback)

    confidence, doubts = found.confidence, found.doubts
    if flat.W.shape[1] < found.normals.shape[1]:
        doubt = "a normal was found that no row is near to (rows may be in several places)"
        confidence, doubts = 0.0, (*doubts, doubt)
    verdict = Verdict(flat.W.shape[1], confidence, found.evidence, doubts)
    B = found.directions[:-1]
    norms = np.linalg.norm(B, axis=0)
    fit = as_fit(seen, members, verdict, B / np.where(norms > 0, norms, 1))
    solution = fit.solution._replace(
        objective=found.objective,
        n_iter=found.n_iter,
        converged=found.converged,
        quiet_doubts=found.quiet_doubts,
    )
    return fit._replace(solution=solution)
