"""What a search returns, and from there to bases of the whole space and to the solution."""

from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.geometry import complement
from perpend.rows import Kept, RowSource, RowSpan, rank_tolerance
from perpend.solvers import Directions, Fit, Solution
from perpend.structure import constants as k
from perpend.structure.checks import SURE, Facts, Verdict
from perpend.structure.decide import Decision

OF_THE_CHOICE = ("plateau_clearness", "ellipse_evidence", "ellipse_gap")  # evidence of it alone


class Answer(NamedTuple):
    """The subspace among some rows, and how it came about."""

    verdict: Verdict
    fit: Fit | None  # None where there are no normals inside the span
    span: RowSpan
    directions: Directions  # in the coordinates of the data
    n_distinct: float  # how many rows count as evidence
    converged: bool
    rows: RowSource  # as they were solved, in the span
    decision: Decision | None = None
    seen_in: RowSpan | None = None  # the span in which the decision was made, if it is another
    distances: Kept | None = None  # of the rows as they were given
    n_rest: int | None = None  # normals outside the span; all of them by default

    @property
    def sure(self) -> bool:
        """Whether it is sure."""
        return self.converged and self.verdict.confidence >= SURE


def as_solution(rows: RowSource, answer: Answer, *, told: bool) -> Solution:
    """Put together what the estimator needs; who told the codimension hears no doubts about it.

    `rows` are those that were descended on.
    """
    verdict, fit, *_ = answer
    directions, decision = answer.directions, answer.decision
    normals, components = _bases(answer)
    structures: tuple[dict[str, object], ...] = ()
    profile = None
    if decision is not None:
        unit, n_outside = rows.unit, answer.span.n_outside
        structures = structures_in(decision, unit, answer.n_distinct / decision.cloud.n, n_outside)
        profile = profile_in(decision, unit, n_outside)
    return Solution(
        normals=normals,
        components=components,
        directions=directions.B,
        singular_values=np.linalg.svd(directions.B, compute_uv=False),
        objective=float(np.mean(directions.objective)) / rows.total_weight,
        confidence=verdict.confidence,
        evidence=verdict.evidence,
        groups=None if fit is None else fit.groups,
        doubts=() if told else verdict.doubts,
        quiet_doubts=verdict.about_rows if told else (),
        n_iter=int(np.max(directions.n_iter)),
        converged=answer.converged,
        rank=rows.shape[1] if fit is None else len(fit.spectrum),
        distances=answer.distances,
        structures=structures,
        profile=profile,
    )


def structures_in(
    decision: Decision, unit: float, rows_for_each: float, n_outside: int = 0
) -> tuple[dict[str, object], ...]:
    """Return what was seen as plain numbers, in the units of the data and for all rows.

    `n_outside` normals are those of the rows' span.
    """
    return tuple(
        {
            "codimension": one.found.c + n_outside,
            "noise": one.noise * unit,
            "members": round(one.found.n_members * rows_for_each),
            "score": one.score,
            "length": one.length,
            "chosen": one.chosen,
        }
        for one in decision.structures
    )


def profile_in(decision: Decision, unit: float, n_outside: int = 0) -> dict[str, Array]:
    """Return the profile in the units of the data, as far as it shows anything, and an octave."""
    shown = np.flatnonzero(np.any(decision.best > 0, axis=0))
    first, last = (shown[0], shown[-1]) if len(shown) else (0, 0)
    part = slice(max(first - k.OCTAVE, 0), last + k.OCTAVE + 1)
    return {
        "scales": decision.cloud.scales[part] * unit,
        "codimensions": decision.cloud.codimensions + n_outside,
        "contrast": decision.best[:, part],
    }


def without_choice(evidence: dict[str, object]) -> dict[str, object]:
    """Return the evidence of a structure that the scales did not choose."""
    return {name: evidence[name] for name in evidence if name not in OF_THE_CHOICE}


def _bases(answer: Answer) -> tuple[Array, Array]:
    """Put normals and components of the whole space together from those inside the span."""
    span, fit, c = answer.span, answer.fit, answer.verdict.codimension
    if fit is not None:
        normals, components = fit.V, _components(fit, span.basis)
    else:
        normals, components = span.axes[:, :c], span.axes[:, c:]
    n_rest = span.n_outside if answer.n_rest is None else answer.n_rest
    rest, unused = span.some_rest(n_rest)
    whole = np.hstack([span.in_data(normals), rest])
    return whole, np.hstack([unused, span.in_data(components)])[:, ::-1]


def _components(fit: Fit, basis: Array) -> Array:
    """Return the inliers' principal axes orthogonal to the normals, smallest variance first.

    Without a finish the normals come from the descents and are not quite principal axes themselves.
    """
    c = fit.V.shape[1]
    if np.array_equal(fit.V, fit.axes[:, :c]):
        return fit.axes[:, c:]
    inside = complement(basis.T @ fit.V)  # (R, R - c), in coordinates of the span
    coordinates = basis.T @ fit.axes @ np.diag(np.sqrt(fit.spectrum))  # moments = this times its .T
    half = inside.T @ coordinates
    _, vectors = np.linalg.eigh(half @ half.T)
    return basis @ inside @ vectors


def evidence_of(
    facts: Facts, needed: float, fit: Fit, dtype: Any, distinct: float
) -> dict[str, object]:
    """Return the numbers behind a decision, by name; `distinct` is what a row's weight counts."""
    groups = fit.groups
    near = float(groups.counts[groups.edges <= groups.threshold].sum()) * distinct
    ratio, runner_up = largest_gaps(fit.spectrum, dtype)
    return {
        "inlier_spectrum": fit.spectrum,
        "inlier_gap": ratio,
        "inlier_gap_runner_up": runner_up,
        "inlier_share": groups.share,
        "rows_on_subspace": round(near),
        "rows_on_any_subspace": facts.n_free,
        "gain": facts.contrast + needed,
        "gain_needed": needed,
        "plateau_length": facts.length,
        "plateau_clearness": facts.clearness,
        "ellipse_evidence": facts.ellipse,
        "ellipse_gap": facts.gap,
    }


def largest_gaps(spectrum: Array, dtype: Any) -> tuple[float, float]:
    """Return the two largest ratios of neighbours in an ascending spectrum, above rounding errors.

    >>> ratio, runner_up = largest_gaps(np.array([1e-9, 2e-9, 0.5, 0.75]), np.float64)
    >>> ratio > 1e8, runner_up
    (True, 2.0)
    """
    floor = rank_tolerance(dtype) * float(np.max(spectrum, initial=0.0))
    t = np.maximum(spectrum, max(floor, np.finfo(float).tiny))
    ratios = sorted((t[1:] / t[:-1]).tolist(), reverse=True)
    first, second, *_ = [*ratios, 1.0, 1.0]
    return first, second
