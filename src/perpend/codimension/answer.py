"""From a judgement inside the rows' span to bases of the whole space."""

from typing import Literal, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.codimension.confidence import weigh_everything, weigh_no_normals
from perpend.codimension.decision import Judge
from perpend.codimension.directions import RankEvidence
from perpend.codimension.result import Codimension
from perpend.geometry import complement
from perpend.solvers import Fit


class Answer(NamedTuple):
    """The subspace, as far as the rows can tell."""

    normals: Array  # (D, c) orthonormal
    components: Array  # (D, d) orthonormal: the inliers' principal axes, largest variance first
    codimension: Codimension  # inside the span of the rows
    fit: Fit | None  # None where there are no normals inside the span


def find_answer(judge: Judge, evidence: RankEvidence, codimension: int | Literal["auto"]) -> Answer:
    """Let the rows choose the codimension, or finish at the one that was told.

    What is orthogonal to every row is a normal before any other.
    """
    span, rest = judge.span, judge.span.rest
    if codimension == "auto":
        judgement = judge.choose(evidence)
    else:
        rest = rest[:, :codimension]
        inside = codimension - rest.shape[1]
        told = 0 < inside < span.rank
        judgement = judge.consider(evidence.basis[:, :inside], evidence) if told else None
    if judgement is not None:
        found, fit = judgement.codimension, judgement.fit
        normals, components = fit.V, _components(fit, span.basis)
    else:
        whole_space = codimension == len(span.basis)
        found = weigh_everything(span) if whole_space else weigh_no_normals(span, judge.share.sum())
        fit, normals = None, span.axes[:, : found.value]
        components = span.axes[:, found.value :]
        if codimension != "auto" and codimension < len(span.basis) - span.rank:
            found = found._replace(confidence=0.0)  # more normals than were asked for are certain
    unused = span.rest[:, rest.shape[1] :]
    return Answer(
        normals=np.hstack([normals, rest]),
        components=np.hstack([unused, components])[:, ::-1],
        codimension=found,
        fit=fit,
    )


def _components(fit: Fit, basis: Array) -> Array:
    """Return the inliers' principal axes orthogonal to the normals, smallest variance first.

    Without a finish the normals come from the descents and are not quite principal axes themselves.
    """
    inside = complement(basis.T @ fit.V)  # (R, R - c), in coordinates of the span
    coordinates = basis.T @ fit.axes @ np.diag(np.sqrt(fit.spectrum))  # moments = this times its .T
    _, vectors = np.linalg.eigh(_square(inside.T @ coordinates))
    return basis @ inside @ vectors


def _square(A: Array) -> Array:
    return A @ A.T
