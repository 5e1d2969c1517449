"""Some of the rows as a jury: what they say for a candidate subspace.

The descents propose normals and the rows decide (`perpend.codimension`). Here the same rows are
asked about several candidates, so what they need for an answer is kept.
"""

from typing import NamedTuple, Self

import numpy as np

from perpend._typing import Array
from perpend.codimension import SURE, Judge, Judgement, distinct_rows
from perpend.geometry import orthonormal
from perpend.kernels import distances
from perpend.rows import as_rows
from perpend.solvers import distance_edges, row_span

NOISE_LIMIT = 0.2  # of the members' squared norm: more noise than that is hardly a subspace
THICK = 0.01  # of the members' squared norm: from here on the codimension must be likely
LIKELY = 0.5  # confidence
CLEARLY_INSIDE = 0.5  # singular value: a direction that lies in the rows' span, and not beside it
FEW_STEPS, ALL_STEPS = 12, 60  # of the finish: to compare candidates, and to end


class Data(NamedTuple):
    """Rows, their weights, and whether only their directions count."""

    X: Array  # (n, D)
    weight: Array | None  # (n,)
    normalize: bool

    def some(self, chosen: Array) -> Self:
        """Return some of the rows, by their positions or by a mask."""
        weight = None if self.weight is None else self.weight[chosen]
        return self._replace(X=self.X[chosen], weight=weight)

    def mapped(self, T: Array) -> Self:
        """Return the rows in other coordinates, X @ T."""
        return self._replace(X=self.X @ T)

    @property
    def can_be_asked(self) -> bool:
        """Whether there are two rows, of two columns, that are not zero and have weight."""
        takes_part = np.any(self.X != 0, axis=1)
        if self.weight is not None:
            takes_part &= self.weight > 0
        return self.X.shape[1] >= 2 and int(takes_part.sum()) >= 2

    def distances(self, V: Array) -> Array:
        """Return the distance of each row to the subspace with normals V (D, c).

        Relative to the row's norm if only directions count; zero rows lie on every subspace.
        """
        rows = as_rows(self.X, normalize=self.normalize)
        kept = rows.scan(distances, V, keep=True).kept
        assert kept is not None
        J: Array = rows.gather(kept) * rows.unit
        return J


class Candidate(NamedTuple):
    """A subspace, and what the rows that were asked say about it."""

    normals: Array  # (D, c) orthonormal
    members: Array  # (n,) bool, of the rows that were asked
    threshold: float  # the distance up to which a row is a member
    scale: float  # the noise in each coordinate; at the floor where the members are exact
    floor: float  # what is rounding error
    support: float  # the gain beyond what accidents reach
    no_accident: float  # in [0, 1]
    confidence: float  # in [0, 1]: no accident, and the codimension is clear
    noise_share: float  # of the members' squared norm
    evidence: dict[str, object]

    @property
    def supported(self) -> bool:
        """Whether so many rows are so near by no accident."""
        return self.no_accident >= SURE and self.noise_share <= NOISE_LIMIT

    @property
    def is_subspace(self) -> bool:
        """Whether it is worth reporting: a cloud that is merely longer than wide is not."""
        return self.supported and (self.noise_share <= THICK or self.confidence >= LIKELY)

    @property
    def exact(self) -> bool:
        """Whether the members' distances are rounding errors."""
        return self.scale <= self.floor

    @property
    def per_member(self) -> float:
        """The support that a member gives; it may be compared between parts and a whole."""
        return self.support / max(int(self.members.sum()), 1)


class Jury:
    """The rows that are asked."""

    def __init__(self, data: Data, rng: np.random.Generator) -> None:
        self.data = data
        self.rows = as_rows(data.X, weight=data.weight, normalize=data.normalize)
        self.span = row_span(self.rows)
        self.judge = Judge(self.rows, self.span, distinct_rows(self.rows, rng), refine=True)

    def weigh(self, V: Array, max_steps: int = ALL_STEPS) -> Candidate | None:
        """Finish at the normals V (D, c) and weigh the result; None if no subspace is left.

        Directions outside of the span are normals of every subspace, and no evidence for any.
        """
        V = self._inside(V)
        if V.shape[1] == 0 and self.span.rest.shape[1] > 0:
            return self.weigh_span()
        if not 0 < V.shape[1] < self.span.rank:
            return None
        judgement = self.judge.consider(V, None, max_steps)
        while judgement.gap.value > judgement.fit.V.shape[1]:  # the members show more normals
            V = judgement.fit.axes[:, : judgement.gap.value]
            smaller = self.judge.consider(V, None, max_steps)
            if smaller.support <= judgement.support:
                break
            judgement = smaller
        return self._candidate(judgement)

    def _candidate(self, judgement: Judgement) -> Candidate:
        fit, _, certificate, found, _ = judgement
        typical = float(np.median(self.rows.norms))
        return Candidate(
            normals=np.hstack([fit.V, self.span.rest]),
            members=certificate.threshold * self.rows.unit >= self.data.distances(fit.V),
            threshold=certificate.threshold * self.rows.unit,
            scale=fit.groups.scale * self.rows.unit,
            floor=float(fit.groups.edges[1]) * self.rows.unit,
            support=judgement.support,
            no_accident=certificate.confidence,
            confidence=found.confidence,
            noise_share=fit.groups.scale**2 * self.span.rank / typical**2,
            evidence=found.evidence,
        )

    def weigh_span(self) -> Candidate:
        """Weigh the span of the rows, where it is not everything: all rows lie on it.

        R rows always span R dimensions; each further one would lie there with probability zero, but
        counts as a coin thrown.
        """
        rank, n_distinct = self.span.rank, float(self.judge.share.sum())
        edges = distance_edges(float(self.rows.norms[-1]), self.rows.dtype) * self.rows.unit
        sure = 1 - 2.0 ** -max(n_distinct - rank, 0.0)
        return Candidate(
            normals=self.span.rest,
            members=np.ones(len(self.data.X), dtype=bool),
            threshold=float(edges[0]),
            scale=float(edges[0]),
            floor=float(edges[1]),
            support=0.0,
            no_accident=sure,
            confidence=sure,
            noise_share=0.0,
            evidence={"rank": rank},
        )

    def _inside(self, V: Array) -> Array:
        """Return an orthonormal basis of what lies inside the span of the rows."""
        V = np.asarray(V, dtype=float)
        if self.span.rank == len(V):
            return orthonormal(V)
        U, s, _ = np.linalg.svd(self.span.basis.T @ V, full_matrices=False)
        return self.span.basis @ U[:, s > CLEARLY_INSIDE]
