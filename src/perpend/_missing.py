"""Fits to rows with missing entries: estimate and filling take turns around the ordinary fit.

The search and the checks see complete rows. What fills the gaps must not confirm what was found
before, so

- entries are *drawn*, with all the noise that the rows have: those of inliers by the law of the
  inliers, those of other rows by the scatter of all rows, which knows no subspace;
- a row of which a share of its c relations can't be tested counts by the others: of all rows, the
  most complete ones take part, as many as all together are worth.

Then the likeliest subspace given the members and nothing but their observed entries is found, the
rows are filled anew, and so on, until codimension and subspace stay the same.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from perpend._learned import Data, DistanceRecord, frame, threshold_of, with_attributes
from perpend._observed import has_gaps, shares
from perpend._spread import with_relations
from perpend._typing import Array
from perpend.exceptions import InputError, MissingWarning
from perpend.geometry import complement
from perpend.rows.kinds import to_numpy
from perpend.rows.masked import LEAST_NOISE, Gaps, Law, likeliest, scatter
from perpend.solvers import Solution
from perpend.structure import SURE
from perpend.structure.constants import DOUBTFUL
from perpend.structure.labels import labels

ROUNDS = 6  # at the most; two or three are the rule
SETTLED_TURN = 0.01  # sine of the angle between two rounds: up to this it has settled,
MOVED_TURN = 0.1  # and beyond this it has not
SHARPER = 0.8  # times the deviation before: noise that falls no faster has settled
INLIERS_CUT_OFF = 0.1  # of all rows, so many members are beyond the limit, by Gaussian noise
TRIMS, STEPS, TOL = 10, 100, 1e-3  # of the members, and of the law in each; it ends them
ROUNDING_NOISE = 1e-7  # of the size of rows: smaller noise is none, and has no limit
LEAST_LEFT = 0.1  # share of the members' squares across that is not taken for their own turn
LEAST_SAMPLE, SAMPLE_PER_COLUMN = 8192, 48  # rows that take part in the rounds; then all do
MOST_ROWS = 20_000  # that say how inliers vary
NAMED_ROWS, LISTED_IN = 5, "listed in undecided_"  # rows that a warning names; where all are


class _Rows(NamedTuple):
    """Rows with gaps."""

    X: Array  # (n, D) in double precision
    gaps: Gaps
    count: Array  # (n,) weights; 0 for empty rows

    def some(self, chosen: Array, norms: Array) -> "_Rows":
        """Return the chosen rows, divided by their norms (n,)."""
        X = self.X[chosen] / norms[chosen, None]
        return _Rows(X, Gaps(X), self.count[chosen])


class _Candidate(NamedTuple):
    """A candidate."""

    law: Law
    inlier: Array  # (n,) bool
    affine: bool
    relative: bool  # whether distances are relative to the norms of the rows

    @property
    def sizes(self) -> tuple[int, int]:
        """The codimension and the dimension."""
        return self.law.normals.shape[1], self.law.axes.shape[1]

    def norms(self, X: Array) -> Array:
        """Return what the distances (n,) of complete rows are divided by."""
        return _norms(X) if self.relative else np.ones(len(X))

    def likeliest(self, rows: _Rows, norms: Array, **how: Any) -> "_Candidate":
        """Return the subspace under which the observed entries of the inliers are likeliest."""
        some = rows.some(self.inlier, norms)
        return self._replace(law=likeliest(*some, self.law, moves=self.affine, **how))

    def settled(self, rows: _Rows) -> "_Candidate":
        """Correct the noise for the inliers having turned the subspace towards themselves.

        Of as many squares as they show, each of the c d numbers that are a subspace takes up one;
        c (d + 1) if it is affine.
        """
        c, d = self.sizes
        seen = c * float(shares(c, self.law.fill(rows.X, rows.gaps).lost)[self.inlier].sum())
        left = max(1 - c * (d + self.affine) / max(seen, 1.0), LEAST_LEFT)
        return self._replace(law=self.law._replace(noise=self.law.noise / left))


def fit_masked(
    model: Any,
    data: Data,
    rng: np.random.Generator,
    fit: Callable[[Array, Array | None], Solution],
) -> Solution:
    """Fit the model to rows that may have gaps; `fit` fits it to complete ones."""
    if not has_gaps(data.X):
        solution = fit(data.X, data.weight)
        _keep_laws(model, data.X)
        return solution
    all_ = _rows(model, data)
    n, D = all_.X.shape
    sample, weight = np.arange(n), data.weight
    if n > (size := max(LEAST_SAMPLE, SAMPLE_PER_COLUMN * D)):
        sample = np.sort(rng.choice(n, size, replace=False, shuffle=False))
    rows = all_.some(sample, np.ones(n))
    start = scatter(*rows, moves=bool(model.affine))
    found, doubt = None, ""
    for _ in range(ROUNDS):
        Z, share = _drawn(rows, start, found, rng)
        some = _worth(share * (rows.count > 0), rng)
        if found is not None and len(some) <= found.sizes[1]:
            doubt = f"the observed entries say no more than {len(some)} complete rows would"
            break
        solution = fit(
            Z[some].astype(data.X.dtype), None if weight is None else weight[sample[some]]
        )
        before, found = found, _refined(model, rows, Z)
        sine, fell = _change(before, found)
        doubt = (
            "the subspace changes with every filling of the missing entries"
            if sine > MOVED_TURN
            else ""
        )
        unsure = before is not None and model.confidence_ < SURE
        if fell > SHARPER and (sine <= SETTLED_TURN or unsure):
            break
    assert found is not None
    if doubt:
        doubt += " (fewer missing entries, or more rows, would help)"
        least = min(DOUBTFUL, solution.confidence)
        solution = solution._replace(confidence=least, doubts=(*solution.doubts, doubt))
        model.confidence_, model.doubts_ = least, (*model.doubts_, doubt)
    if found.sizes[0]:
        found = _among_all(model, all_, found) if n > len(sample) else found
        if found.inlier.sum() > found.sizes[1]:  # the last digits
            norms = found.norms(found.law.fill(all_.X, all_.gaps).X)
            found = found.likeliest(all_, norms).settled(all_)
    _learn(model, found, data, Z)
    return solution


def typical(X: Array) -> Array:
    """Return X with the median of its column for each missing entry."""
    if not has_gaps(X):
        return X
    missing = np.isnan(X)
    seen = np.where(missing.all(axis=0), 0.0, X)
    return np.where(missing, np.nanmedian(seen, axis=0).astype(X.dtype), X)


def _rows(model: Any, data: Data) -> _Rows:
    """Return the rows in double precision, if every column has an entry."""
    X = data.X.astype(float)
    gaps, names = Gaps(X), getattr(model, "feature_names_in_", None)
    empty = np.flatnonzero(gaps.missing.all(axis=0))
    if len(empty):
        name = empty[0] if names is None else f'"{names[empty[0]]}"'
        more = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        raise InputError(f"Column {name}{more} of X has no observed entry. Leave it out.")
    model.n_missing_ = int(gaps.n_missing.sum())
    count = np.ones(len(X)) if data.weight is None else data.weight.astype(float)
    return _Rows(X, gaps, count * (gaps.n_missing < X.shape[1]))


# -- a round ---------------------------------------------------------------------------------------


def _drawn(
    rows: _Rows, start: Law, found: _Candidate | None, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return rows with random entries, and the share (n,) of its relations that each can test.

    Before there is a candidate, all rows propose, with expected entries: noise would only hide it.
    """
    (X, gaps, _), D = rows, rows.X.shape[1]
    if found is None:
        return start.fill(X, gaps).X, np.ones(len(X))
    fill = start.fill(X, gaps, rng)
    scale2 = start.noise * start.squares(fill.X) / np.maximum(D - gaps.n_missing, 1)
    Z, share = fill.X + np.sqrt(scale2)[:, None] * fill.noise, np.ones(len(X))
    if found.sizes[0]:
        fill = found.law.fill(X, gaps, rng)
        scale = np.sqrt(found.law.noise) * found.norms(fill.X)
        Z = np.where(found.inlier[:, None], fill.X + scale[:, None] * fill.noise, Z)
        share = shares(found.sizes[0], fill.lost)
    return Z, share


def _worth(share: Array, rng: np.random.Generator) -> Array:
    """Return the most complete rows, as many as all together are worth."""
    n = round(float(share.sum()))
    order = np.lexsort((rng.random(len(share)), -share))
    return np.sort(order[:n])


def _refined(model: Any, rows: _Rows, Z: Array) -> _Candidate:
    """Return the likeliest subspace of the inliers, given their observed entries alone.

    They are within the model's threshold, and within what Gaussian noise reaches: a search that saw
    rows filled badly has a threshold that is too large.
    """
    X, gaps, count = rows
    N, centre = to_numpy(model.normals_).astype(float).T, to_numpy(model.location_).astype(float)
    (D, c), relative = N.shape, model.normalize and not model.affine_
    found = _Candidate(Law(centre, N, *_basis(N)), count < 0, model.affine_, relative)
    if not c:
        return found
    norms, limit = found.norms(Z), float(model._outlier_odds["threshold"])
    Y = Z / norms[:, None] - centre
    near = (np.linalg.norm(Y @ N, axis=1) <= limit) & (count > 0)
    for step in range(TRIMS):
        if np.array_equal(near, found.inlier) or near.sum() <= D - c:
            break
        found = found._replace(inlier=near)
        if step == 0:
            w = count[near, None]
            found = found._replace(law=Law.of((Y[near] * w).T @ Y[near] / w.sum(), centre, c))
        found = found.likeliest(rows, norms, steps=STEPS, tol=TOL)
        law, fill = found.law, found.law.fill(X, gaps)
        share, norms = shares(c, fill.lost), found.norms(fill.X)
        J2 = np.square(np.linalg.norm((fill.X - law.centre) @ law.normals, axis=1) / norms)
        known, size2 = (share > 0) & (count > 0), float(np.mean([*law.variances, law.noise]))
        reach = np.maximum(_reach(J2, c * share, near & known), ROUNDING_NOISE**2 * size2)
        near = known & (np.minimum(reach, limit**2 * share) >= J2)
    return found.settled(rows)


def _among_all(model: Any, rows: _Rows, found: _Candidate) -> _Candidate:
    """Return the same with all rows, of which a sample was searched."""
    X, gaps, count = rows
    fill = found.law.fill(X, gaps)
    J = np.linalg.norm((fill.X - found.law.centre) @ found.law.normals, axis=1)
    share, limit = shares(found.sizes[0], fill.lost), float(model._outlier_odds["threshold"])
    inlier = (limit * found.norms(fill.X) * np.sqrt(share) >= J) & (share > 0) & (count > 0)
    return found._replace(inlier=inlier)


def _reach(J2: Array, freedom: Array, inlier: Array) -> Array:
    """Return the squared distance that Gaussian noise reaches in each row, by that of inliers.

    With k degrees of freedom the squares are chi-squared of k degrees, of which the median tells
    the scale.
    """
    if not inlier.any():
        return np.full(len(J2), np.inf)
    scale = np.median(J2[inlier] / special.gammaincinv(freedom[inlier] / 2, 0.5))
    reach: Array = scale * special.gammaincinv(freedom / 2, 1 - INLIERS_CUT_OFF / len(J2))
    return reach


def _change(before: _Candidate | None, found: _Candidate) -> tuple[float, float]:
    """Return the sine of the angle between two subspaces, and the ratio of the noise of both."""
    if before is None:
        return 1.0, 0.0
    A, B = before.law.normals, found.law.normals
    fell = float(np.sqrt(found.law.noise / before.law.noise))
    if A.shape != B.shape or before.affine != found.affine:
        return 1.0, fell
    return float(np.linalg.norm(B - A @ (A.T @ B), ord=2)) if B.shape[1] else 0.0, fell


def _norms(X: Array) -> Array:
    return np.maximum(np.linalg.norm(X, axis=1), np.finfo(float).tiny)


def _basis(N: Array) -> tuple[Array, Array, float]:
    """Return the complement of the normals N (D, c), with variances that say nothing."""
    D, c = N.shape
    return (complement(N) if c else np.eye(D)), np.ones(D - c), 1.0


# -- what is learned -------------------------------------------------------------------------------


def _learn(model: Any, found: _Candidate, data: Data, Z: Array) -> None:
    """Turn the last candidate into attributes, and label all rows by their observed entries."""
    (X, weight, place, _), law = data, found.law
    if found.sizes[0]:
        order = np.argsort(-law.variances)
        location = law.centre if found.affine else None
        model.__dict__.update(frame(law.axes[:, order], law.normals, location, X.dtype, place))
        model._law = {"variances": law.variances[order], "noise": law.noise}
        model._normals_error = None  # that of the drawn rows, which know more than was observed
    _keep_laws(model, Z)
    if model._spread is not None:
        model._spread = with_relations(model._both, model, Z, None)._asdict()
    chosen = _labelled(model, X, weight)
    model.__dict__.update({**chosen, "labels_": place.back(chosen["labels_"])})
    if model.noise_ > 0 and found.sizes[0]:
        model.noise_ = float(np.sqrt(law.noise * X.shape[1]))
    for one in model._others:
        if one is not None:
            table = _labelled(with_attributes(model, one), X, weight)
            one.update({**table, "labels_": place.back(table["labels_"] == 1)})
    for seen, table in zip(model.structures_, model._others, strict=True):
        inlier = model.labels_ == 1 if table is None else table["labels_"]
        seen["members"] = int(inlier.sum())
    if n := len(model.undecided_):
        shown = ", ".join(str(i) for i in model.undecided_[:NAMED_ROWS])
        one, more = n == 1, f", ... {LISTED_IN}" if n > NAMED_ROWS else ""
        warnings.warn(
            f"{n} of {len(X)} rows {'has' if one else 'have'} too few observed entries to be "
            f"compared with a subspace of codimension {model.codimension_} "
            f"(row{'' if one else 's'} {shown}{more}, counting from 0). "
            f"{'It was' if one else 'They were'} left out, with the label +1.",
            MissingWarning,
            stacklevel=5,
        )


def _labelled(model: Any, X: Array, weight: Array | None) -> dict[str, Any]:
    """Return threshold, labels and counted distances of all rows."""
    scores, known = model._scores(X)
    distance, some = -to_numpy(scores), slice(None) if known is None else known
    w = None if weight is None else weight[some]
    limit = threshold_of(model, distance[some], model.threshold_, w)
    table: dict[str, Any] = {"threshold_": limit, "offset_": -limit}
    table["undecided_"] = np.zeros(0, dtype=int)
    if known is not None:
        distance, table["undecided_"] = np.where(known, distance, 0.0), np.flatnonzero(~known)
    table["labels_"] = labels(distance, limit)
    record = model._distance_record
    if record is not None and model._spread is None:
        old = DistanceRecord(**record)
        new = old.counted(distance[some].astype(float), w)
        grown = new.counts.sum() / (old.n_inliers + old.n_outliers)
        new = new._replace(n_inliers=old.n_inliers * grown, n_outliers=old.n_outliers * grown)
        table["_distance_record"] = new._asdict()
    return table


def _keep_laws(model: Any, Z: Array) -> None:
    """Keep what fills the gaps of other rows: the variances of the inliers among complete rows Z.

    They are relative to the squared norms of the rows where distances are.
    """
    Z = to_numpy(Z[:: -(-len(Z) // MOST_ROWS)]).astype(float)
    for table in (vars(model), *model._others):
        if table is None or table.get("_law") is not None:
            continue
        Y = Z - to_numpy(table["location_"])
        if model.normalize and not model.affine_:
            Y = Y / _norms(Y)[:, None]
        N, U = (to_numpy(table[name]).astype(float).T for name in ("normals_", "components_"))
        near = np.linalg.norm(Y @ N, axis=1) <= table["_outlier_odds"]["threshold"]
        along, noise = _variances(Y[near] if near.sum() > 1 else Y, U, N)
        table["_law"] = {"variances": along, "noise": noise}


def _variances(Y: Array, U: Array, N: Array) -> tuple[Array, float]:
    """Return the mean squares along the axes U (D, d), and over the normals N (D, c)."""
    along, across = (np.mean(np.square(Y @ A), axis=0) for A in (U, N))
    least = LEAST_NOISE * float(np.max([*along, *across])) + np.finfo(float).tiny
    noise = float(across.mean()) if len(across) else float(along.mean())
    return np.maximum(along, least), max(noise, least)
