"""The functional form: rows in, the subspaces they lie on out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array, RandomState
from perpend._validation import Count, checked, checked_weight
from perpend.estimator import SubspaceEstimator
from perpend.exceptions import InputError
from perpend.geometry import as_generator, complement
from perpend.methods.dpcp import DPCP
from perpend.peeling.find import Data, Search, lifted, normals, share_out
from perpend.rows import as_rows, distinct_rows, row_span
from perpend.rows.kinds import Place, to_numpy
from perpend.structure import Decision
from perpend.structure.constants import SURE


class Subspace(NamedTuple):
    """One of the subspaces that `peel` found."""

    normals: Array  # (codimension, D) orthonormal rows
    components: Array  # (D - codimension, D) orthonormal rows
    codimension: int  # number of its normals
    confidence: float  # in [0, 1]; from 0.95 on it is called sure
    members: Array  # (m,) positions of its rows in X, ascending
    threshold: float  # the largest distance of a member
    noise: float  # expected norm of the members' noise, 0 where they are exact
    evidence: dict[str, object]  # the numbers behind the confidence
    location: Array  # (D,) the point of the subspace that is nearest to the members' mean

    @property
    def intercept(self) -> Array:
        """The subspace is normals @ x = intercept, (codimension,)."""
        return self.normals @ self.location

    @property
    def plane(self) -> Array:
        """The plane a x + b y + ... + d = 0 as [a, b, ..., d], of a subspace with one normal."""
        if self.codimension != 1:
            raise InputError(f"A plane has one normal; this subspace has {self.codimension}.")
        return np.append(self.normals[0], -self.intercept)

    def __repr__(self) -> str:
        return (
            f"Subspace(dimension {len(self.components)}, codimension {self.codimension}, "
            f"{len(self.members)} rows, confidence {self.confidence:.2f})"
        )


@dataclass(frozen=True, repr=False, eq=False)
class Peeled:
    """What `peel` found; unpacks as ``subspaces, labels``."""

    subspaces: list[Subspace]  # in the order in which they were found; empty if there is none
    labels: Array  # (n,) the number of the subspace that each row belongs to, -1 for none
    limit: int | None = None  # `max_subspaces`, if the search ended there and not by itself

    def __iter__(self) -> Iterator[Any]:
        return iter((self.subspaces, self.labels))

    def __repr__(self) -> str:
        sizes = ", ".join(str(subspace.codimension) for subspace in self.subspaces)
        left = int(np.sum(self.labels == -1))
        return (
            f"Peeled({len(self.subspaces)} subspaces of codimension [{sizes}], "
            f"{left} of {len(self.labels)} rows on none)"
        )

    def summary(self) -> str:
        """Return the result in a few lines of text.

        Returns
        -------
        str
        """
        n, left = len(self.labels), int(np.sum(self.labels == -1))
        lines = [f"subspaces   {len(self.subspaces)}"]
        for k, one in enumerate(self.subspaces):
            sure = "sure" if one.confidence >= SURE else "not sure"
            lines.append(
                f"{k:<11} dimension {len(one.components)}, codimension {one.codimension}, "
                f"{len(one.members)} rows, noise {one.noise:.2g}, "
                f"confidence {one.confidence:.2f} ({sure})"
            )
        lines.append(f"outliers    {left} of {n} rows ({left / n:.1%})")
        if self.limit is not None:
            lines.append(
                f"ended       at max_subspaces={self.limit}: the other rows may lie on more. Call "
                f"peel again with max_subspaces={2 * self.limit}"
            )
        return "\n".join(lines)


def peel(
    X: Array,
    *,
    affine: bool = False,
    max_subspaces: int = 10,
    estimator: SubspaceEstimator | None = None,
    sample_weight: Array | None = None,
    random_state: RandomState = None,
) -> Peeled:
    """Find the subspaces that the rows lie on, one after the other.

    A subspace is found, its members are taken away, and the rest is searched again, until the rest
    supports no further one. In the end every row goes to one of the subspaces or to none. Use it
    where the outliers have a structure of their own: several planes, a plane beside a larger
    subspace, two groups of rows.

    A column that is zero in all rows, or with `affine` the same in all of them, is left out, as it
    does not say which rows belong together: rows that fill all other columns are on no subspace.

    Every subspace is the smallest one that explains its members: where two lie in a common larger
    one, both are reported and not their sum. What few or scattered rows lie on is not reported: a
    subspace of dimension d needs clearly more than d distinct rows.

    Parameters
    ----------
    X : array-like or torch tensor of shape (n_samples, n_features)
        A tensor is brought to memory, and the result is in NumPy.
    affine : bool, default=False
        Whether the subspaces may miss the origin: planes in a scan, in metres. Distances are then
        Euclidean and rows are taken as they are.
    max_subspaces : int, default=10
        The largest number of subspaces to find.
    estimator : SubspaceEstimator, optional
        How a single subspace is proposed; ``DPCP(affine=affine)`` by default. It is copied for
        every fit. Its threshold and contamination play no part, as the rows of all subspaces set
        their own.
    sample_weight : array-like of shape (n_samples,), optional
        A row of weight w counts like w equal rows.
    random_state : int, Generator, RandomState or None, default=None
        Seeds every fit, whatever the estimator's own. The same seed gives the same result.

    Returns
    -------
    Peeled
        `subspaces`, a list of `Subspace` in the order in which they were found, and `labels`, the
        number of the subspace for each row or -1. A row near several goes to the one under which
        it is most likely; on an intersection that is the smaller one. `limit` is `max_subspaces`
        if the search ended there, so that there may be more; otherwise None.

    Examples
    --------
    >>> import numpy as np
    >>> from perpend import peel
    >>> from perpend.datasets import make_subspace
    >>> large = make_subspace(300, 0, n_features=10, codimension=3, random_state=0).X
    >>> small = make_subspace(200, 100, n_features=10, codimension=8, random_state=1).X
    >>> found = peel(np.vstack([large, small]), random_state=0)
    >>> sorted((s.codimension, len(s.members)) for s in found.subspaces)
    [(3, 300), (8, 200)]
    >>> int(np.sum(found.labels == -1))
    100
    """
    model = _checked_estimator(estimator, affine)
    if not Count(1).is_satisfied_by(max_subspaces):
        raise InputError(f"max_subspaces={max_subspaces!r}; expected a whole number from 1 on.")
    place = Place(X, None)
    X = to_numpy(checked(model, X, place, reset=True, may_mask=False))
    weight = checked_weight(sample_weight, X, place)
    middle = np.zeros(X.shape[1])
    if affine:  # about the mean, where all rows have their digits
        middle = np.average(X, axis=0, weights=weight)
        X = (X - middle).astype(X.dtype)
        if not np.any(X):  # all rows are equal
            return Peeled([], np.full(len(X), -1))
    unit_rows = model.normalize and not affine
    weighted, rows = (as_rows(X, weight=w, normalize=unit_rows) for w in (weight, None))
    span = row_span(weighted)
    if affine:  # rows that differ by their sign alone are not equal
        X1 = np.hstack([X, np.full((len(X), 1), rows.norms[-1], dtype=X.dtype)])
        weighted = as_rows(X1, weight=weight, normalize=False)
    weight = np.ones(len(X)) if weight is None else weight
    data = Data(rows.take(np.arange(len(X))), weight, weight, affine)
    present = (affine | np.any(X != 0, axis=1)) & (weight > 0)
    search = Search(model, as_generator(random_state))
    counted = distinct_rows(weighted, search.rng)
    seen = data.some(present)._replace(share=counted.share[present])
    if span.n_outside == 0 or search.fixed is not None:
        decisions, limited = search.find_all(seen, int(max_subspaces))
    else:
        # One direction beside their span is kept, so that all rows lie on a subspace; not where
        # columns that are zero or equal say it.
        kept = int(span.rank + span.n_idle_columns < X.shape[1])
        B, rest = np.hstack([span.basis, span.rest[:, :kept]]), span.rest[:, kept:]
        inside, limited = search.find_all(seen.mapped(B), int(max_subspaces))
        decisions = [lifted(one, B, rest) for one in inside]
    labels = share_out(data, decisions)
    decisions = [one for k, one in enumerate(decisions) if np.any(labels == k)]
    labels = share_out(data, decisions)
    subspaces = [_subspace(data, one, labels == k, rows.unit) for k, one in enumerate(decisions)]
    if affine:
        subspaces = [one._replace(location=one.location + middle) for one in subspaces]
    return Peeled(subspaces, labels, int(max_subspaces) if limited else None)


def _checked_estimator(estimator: Any, affine: bool) -> Any:
    """Return a copy that sets the threshold itself, or say why the estimator can't be used."""
    if affine not in (False, True):
        raise InputError(f"affine={affine!r}; expected True or False.")
    if estimator is None:
        return DPCP(affine=affine)
    if not isinstance(estimator, SubspaceEstimator):
        raise InputError(
            f"estimator is a {type(estimator).__name__}; expected one of perpend's estimators, "
            "for example DPCP()."
        )
    if getattr(estimator, "affine", False) != affine:
        raise InputError(
            f"peel has affine={affine}, and the estimator affine={estimator.affine!r}. Give both "
            "the same, True or False."
        )
    if getattr(estimator, "missing", "error") == "mask":
        raise InputError(
            'peel needs complete rows, and the estimator has missing="mask". Use missing="error", '
            "and drop rows with NaN or fill them first."
        )
    copy = type(estimator)(**estimator.get_params(deep=False))
    return copy.set_params(threshold="auto", contamination=None)


def _subspace(data: Data, decision: Decision, members: Array, unit: float) -> Subspace:
    """Return the subspace of its members: bases as rows, in the precision of the data."""
    own, c, (D, _) = data.some(members), decision.candidate.c, decision.candidate.axes.A.shape
    J, V, mean = own.distances(decision) * unit, normals(decision), np.zeros(D)
    if data.affine:
        mean = own.X.mean(axis=0, dtype=float)
        mean -= V @ (V.T @ (mean - decision.candidate.axes.centre))  # onto the subspace
    inside = complement(V)
    Y = (own.X - mean) @ inside
    _, axes = np.linalg.eigh(Y.T @ Y)
    return Subspace(
        normals=np.ascontiguousarray(V.T, dtype=data.X.dtype),
        components=np.ascontiguousarray((inside @ axes[:, ::-1]).T, dtype=data.X.dtype),
        codimension=c,
        confidence=decision.confidence,
        members=np.flatnonzero(members),
        threshold=float(J.max()),
        # The distances show the noise in c of the D coordinates.
        noise=0.0 if decision.candidate.is_exact else float(np.sqrt(np.mean(J**2) * D / c)),
        evidence={
            "gain": decision.facts.contrast + decision.facts.needed,
            "gain_needed": decision.facts.needed,
            "plateau_length": decision.facts.length,
            "plateau_clearness": decision.facts.clearness,
            "doubts": tuple(str(doubt) for doubt in decision.doubts),
        },
        location=mean,
    )
