"""The functional form: rows in, the subspaces they lie on out."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array, RandomState
from perpend._validation import checked, checked_weight
from perpend.codimension import SURE
from perpend.estimator import SubspaceEstimator
from perpend.exceptions import InputError
from perpend.geometry import as_generator, complement, orthonormal
from perpend.methods import DPCP
from perpend.peeling.find import Search, find_next, fresh
from perpend.peeling.frame import find_frame
from perpend.peeling.jury import Candidate, Data
from perpend.peeling.share import is_shadow, settle
from perpend.rows.devices import Place
from perpend.rows.kinds import to_numpy


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

    def __repr__(self) -> str:
        return (
            f"Subspace(dimension {len(self.components)}, codimension {self.codimension}, "
            f"{len(self.members)} rows, confidence {self.confidence:.2f})"
        )


class Peeled(NamedTuple):
    """What `peel` found."""

    subspaces: list[Subspace]  # in the order in which they were found; empty if there is none
    labels: Array  # (n,) the number of the subspace that each row belongs to, -1 for none

    def __repr__(self) -> str:
        sizes = ", ".join(str(found.codimension) for found in self.subspaces)
        left = int(np.sum(self.labels == -1))
        return (
            f"Peeled({len(self.subspaces)} subspaces of codimension [{sizes}], "
            f"{left} of {len(self.labels)} rows on none)"
        )

    def summary(self) -> str:
        """Return the answer in a few lines of text.

        Returns
        -------
        str
        """
        n, left = len(self.labels), int(np.sum(self.labels == -1))
        lines = [f"subspaces   {len(self.subspaces)}"]
        for k, found in enumerate(self.subspaces):
            sure = "sure" if found.confidence >= SURE else "not sure"
            lines.append(
                f"{k:<11} dimension {len(found.components)}, codimension {found.codimension}, "
                f"{len(found.members)} rows, confidence {found.confidence:.2f} ({sure})"
            )
        lines.append(f"outliers    {left} of {n} rows ({left / n:.1%})")
        return "\n".join(lines)


def peel(
    X: Array,
    *,
    max_subspaces: int = 10,
    estimator: SubspaceEstimator | None = None,
    sample_weight: Array | None = None,
    random_state: RandomState = None,
) -> Peeled:
    """Find the subspaces that the rows lie on, one after the other.

    A subspace is found, its members are taken away, and the rest is asked again, until the rest
    supports no further one. In the end every row goes to one of the subspaces or to none. Use it
    where the outliers have a structure of their own: several planes, a plane beside a larger
    subspace, two groups of rows.

    Every subspace is the smallest one that explains its members: where two lie in a common larger
    one, both are reported and not their sum. What few or scattered rows lie on is not reported: a
    subspace of dimension d needs clearly more than d distinct rows.

    Parameters
    ----------
    X : array-like or torch tensor of shape (n_samples, n_features)
        A tensor is brought to memory, and the answer is in NumPy.
    max_subspaces : int, default=10
        The most subspaces to look for.
    estimator : SubspaceEstimator, optional
        How a single subspace is proposed; ``DPCP()`` by default. It is copied for every fit. Its
        threshold and contamination play no part, as the rows of all subspaces set their own.
    sample_weight : array-like of shape (n_samples,), optional
        A row of weight w counts like w equal rows.
    random_state : int, Generator, RandomState or None, default=None
        Seeds every fit, whatever the estimator's own. The same seed gives the same answer.

    Returns
    -------
    Peeled
        `subspaces`, a list of `Subspace` in the order in which they were found, and `labels`, the
        number of the subspace for each row or -1. A row near several goes to the one under which
        it is most likely; on an intersection that is the smaller one.

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
    model = _checked_estimator(estimator)
    if not (isinstance(max_subspaces, Integral) and max_subspaces >= 1):
        raise InputError(f"max_subspaces={max_subspaces!r}; expected a whole number from 1 on.")
    place = Place(X, None)
    X = to_numpy(checked(model, X, place, reset=True))
    data = Data(X, checked_weight(sample_weight, X, place), model.normalize)
    search = Search(model, as_generator(random_state))
    frame = find_frame(data, search.rng)
    found, labels = _all_subspaces(
        search, data if frame is None else data.mapped(frame), max_subspaces
    )
    subspaces = []
    for k, subspace in enumerate(found):
        V = subspace.normals if frame is None else orthonormal(frame @ subspace.normals)
        subspaces.append(_subspace(data, V, subspace, labels == k))
    return Peeled(subspaces, labels)


def _all_subspaces(search: Search, data: Data, max_subspaces: int) -> tuple[list[Candidate], Array]:
    """Take one subspace after the other away; then share the rows out."""
    found: list[Candidate] = []
    rest = data
    while len(found) < max_subspaces:
        new = find_next(search, rest)
        if new is None:
            break
        # The far end of what was found before is taken away, too, but is no subspace of its own.
        if not is_shadow(rest, new, found):
            found.append(new)
        rest = rest.some(~new.members)
    return settle(data, found, search.rng)


def _checked_estimator(estimator: Any) -> Any:
    """Return a fresh copy of the estimator, or say why it can't be used."""
    if estimator is None:
        return DPCP()
    if not isinstance(estimator, SubspaceEstimator):
        raise InputError(
            f"estimator is a {type(estimator).__name__}; expected one of perpend's estimators, "
            "for example DPCP()."
        )
    if getattr(estimator, "affine", False):
        raise InputError(
            "peel looks for subspaces through the origin. Append a column of ones to X and use "
            "affine=False: an affine subspace of X is a linear one there."
        )
    return fresh(estimator)


def _subspace(data: Data, V: Array, found: Candidate, members: Array) -> Subspace:
    """Turn a candidate into an answer: bases as rows, in the precision of the data."""
    D, c = V.shape
    own = data.some(members)
    J = own.distances(V)
    # The distances show the noise in c of the D coordinates.
    noise = 0.0 if found.exact else float(np.sqrt(np.mean(J**2) * D / c))
    return Subspace(
        normals=np.ascontiguousarray(V.T, dtype=data.X.dtype),
        components=np.ascontiguousarray(_principal_axes(own, V).T, dtype=data.X.dtype),
        codimension=c,
        confidence=found.confidence,
        members=np.flatnonzero(members),
        threshold=float(J.max()),
        noise=noise,
        evidence=found.evidence,
    )


def _principal_axes(own: Data, V: Array) -> Array:
    """Return the members' axes (D, d) orthogonal to the normals V, largest variance first."""
    rows = own.X
    if own.normalize:
        lengths = np.linalg.norm(rows, axis=1)
        rows = rows / np.where(lengths > 0, lengths, 1)[:, None]
    inside = complement(V)
    _, axes = np.linalg.eigh(inside.T @ (rows.T @ rows) @ inside)
    return inside @ axes[:, ::-1]
