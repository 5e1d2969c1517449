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

from perpend._learned import DistanceRecord, bases, threshold_of, with_attributes
from perpend._observed import in_numpy, shares
from perpend._typing import Array
from perpend.exceptions import InputError, MissingWarning
from perpend.geometry import complement
from perpend.rows.kinds import Place, to_numpy
from perpend.rows.masked import LEAST_NOISE, Gaps, Law, likeliest, scatter
from perpend.solvers import Solution
from perpend.structure import SURE
from perpend.structure.constants import DOUBTFUL
from perpend.structure.labels import labels

ROUNDS = 6  # at the most; two or three are the rule
SAME, OTHER = 0.01, 0.1  # sine of an angle: up to the first it has settled, beyond the other not
SHARPER = 0.8  # times the deviation before: noise that falls no faster has settled
LOST = 0.1  # inliers with Gaussian noise that the limit for members loses, of all rows
TRIMS, STEPS, TURN = 10, 30, 1e-3  # of the members, and of the law in each; it ends them
EXACT = 1e-7  # of the size of rows: smaller noise is none, and has no limit
LEAST_LEFT = 0.1  # share of the members' squares across that is not taken for their own turn
SHOWN = 5  # rows that a warning names


class _Found(NamedTuple):
    """A candidate."""

    law: Law
    inlier: Array  # (n,) bool
    affine: bool
    relative: bool  # whether distances are relative to the norms of the rows

    def _with_noise(self, X: Array, gaps: Gaps) -> "_Found":
        """Correct the noise for the members having turned the subspace towards themselves.

        Of as many squares as they show, the c (d + 1) numbers that are a subspace take up one each;
        c d of them, if it is not affine.
        """
        d, c = self.law.axes.shape[1], self.law.normals.shape[1]
        seen = c * float(shares(c, self.law.fill(X, gaps).lost)[self.inlier].sum())
        left = max(1 - c * (d + self.affine) / max(seen, 1.0), LEAST_LEFT)
        return self._replace(law=self.law._replace(noise=self.law.noise / left))


def fit_masked(
    model: Any,
    X: Array,
    weight: Array | None,
    place: Place,
    rng: np.random.Generator,
    fit: Callable[[Array, Array | None], Solution],
) -> Solution:
    """Fit the model to rows X (n, D), which may have gaps; `fit` fits it to complete rows."""
    gaps = Gaps(in_numpy(X)) if not isinstance(X, np.ndarray) or np.isnan(X).any() else None
    if gaps is None:
        solution = fit(X, weight)
        _keep_laws(model, X.astype(float))
        return solution
    _check(model, gaps)
    given, X = X, X.astype(float)
    count = np.ones(len(X)) if weight is None else to_numpy(weight).astype(float)
    count = count * (gaps.n_missing < X.shape[1])
    start = scatter(X, gaps, count, moves=bool(model.affine))
    found, doubt = None, ""
    for _ in range(ROUNDS):
        Z, share = _drawn(X, gaps, start, found, rng)
        some = _worth(share * (count > 0), rng)
        if found is not None and len(some) <= found.law.axes.shape[1]:
            doubt = f"all observed entries that could confirm it are worth {len(some)} rows"
            break
        solution = fit(Z[some].astype(given.dtype), None if weight is None else weight[some])
        before, found = found, _refined(model, X, Z, gaps, count)
        doubt = ""
        sine, fell = _change(before, found)
        if sine > OTHER:
            doubt = "the subspace changes as missing entries are filled anew"
        if fell > SHARPER and (sine <= SAME or (before is not None and model.confidence_ < SURE)):
            break
    if doubt:
        doubt += " (fewer missing entries, or more rows, would help)"
        least = min(DOUBTFUL, solution.confidence)
        solution = solution._replace(confidence=least, doubts=(*solution.doubts, doubt))
        model.confidence_, model.doubts_ = least, (*model.doubts_, doubt)
    assert found is not None
    found = _polished(found, X, gaps, count)
    _learn(model, found, given, Z, weight, place)
    return solution


def typical(X: Array) -> Array:
    """Return X with the median of its column for each missing entry."""
    if not isinstance(X, np.ndarray) or not (missing := np.isnan(X)).any():
        return X
    seen = np.where(missing.all(axis=0), 0.0, X)
    return np.where(missing, np.nanmedian(seen, axis=0).astype(X.dtype), X)


# -- a round ---------------------------------------------------------------------------------------


def _drawn(
    X: Array, gaps: Gaps, start: Law, found: _Found | None, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return rows with random entries, and the share (n,) of its relations that each can test."""
    D = X.shape[1]
    fill = start.fill(X, gaps, rng)
    scale2 = start.noise * start.squares(fill.X) / np.maximum(D - gaps.n_missing, 1)
    Z, share = fill.X + np.sqrt(scale2)[:, None] * fill.noise, 1 - gaps.n_missing / D
    if found is not None and (c := found.law.normals.shape[1]):
        fill = found.law.fill(X, gaps, rng)
        scale = np.sqrt(found.law.noise) * (_norms(fill.X) if found.relative else np.ones(len(X)))
        Z = np.where(found.inlier[:, None], fill.X + scale[:, None] * fill.noise, Z)
        share = shares(c, fill.lost)
    return Z, share


def _worth(share: Array, rng: np.random.Generator) -> Array:
    """Return the most complete rows, as many as all together are worth."""
    n = round(float(share.sum()))
    order = np.lexsort((rng.random(len(share)), -share))
    return np.sort(order[:n])


def _refined(model: Any, X: Array, Z: Array, gaps: Gaps, count: Array) -> _Found:
    """Return the likeliest subspace of the members, given their observed entries alone.

    Members are within the model's threshold, and within what Gaussian noise reaches: a search that
    saw rows filled badly has a threshold that is too large.
    """
    N, centre = to_numpy(model.normals_).astype(float).T, to_numpy(model.location_).astype(float)
    (D, c), limit = N.shape, float(model._outlier_odds["threshold"])
    relative = model.normalize and not model.affine_
    if not c:
        law = Law(centre, N, np.eye(D), np.ones(D), 1.0)
        return _Found(law, count > 0, model.affine_, relative)
    norms = _norms(Z) if relative else np.ones(len(Z))
    J, inlier, law = np.linalg.norm((Z - centre) @ N, axis=1) / norms, count < 0, None
    near = (limit >= J) & (count > 0)
    for _ in range(TRIMS):
        if np.array_equal(near, inlier) or near.sum() <= D - c:
            break
        inlier = near
        rows, w = X[inlier] / norms[inlier, None], count[inlier]
        if law is None:
            Y = Z[inlier] / norms[inlier, None] - centre
            law = Law.of((Y * w[:, None]).T @ Y / w.sum(), centre, c)
        law = likeliest(rows, Gaps(rows), w, law, moves=model.affine_, steps=STEPS, tol=TURN)
        fill = law.fill(X, gaps)
        share, norms = shares(c, fill.lost), _norms(fill.X) if relative else norms
        J2 = np.square(np.linalg.norm((fill.X - law.centre) @ law.normals, axis=1) / norms)
        known, size2 = (share > 0) & (count > 0), 1.0 if relative else law.variances.mean()
        reach = np.maximum(_reach(J2, c * share, inlier & known), EXACT**2 * size2)
        near = known & (np.minimum(reach, limit**2 * share) >= J2)
    if law is None:  # fewer members than dimensions
        law = Law(centre, N, *_variances(Z / norms[:, None] - centre, complement(N), N))
        return _Found(law, inlier, model.affine_, relative)
    return _Found(law, inlier, model.affine_, relative)._with_noise(X, gaps)


def _reach(J2: Array, freedom: Array, inlier: Array) -> Array:
    """Return the squared distance that Gaussian noise reaches in each row, by that of inliers.

    With k degrees of freedom the squares are chi-squared of k degrees, of which the median tells
    the scale.
    """
    if not inlier.any():
        return np.full(len(J2), np.inf)
    scale = np.median(J2[inlier] / special.gammaincinv(freedom[inlier] / 2, 0.5))
    reach: Array = scale * special.gammaincinv(freedom / 2, 1 - LOST / len(J2))
    return reach


def _polished(found: _Found, X: Array, gaps: Gaps, count: Array) -> _Found:
    """Return the same with the last digits."""
    law, inlier = found.law, found.inlier
    if not law.normals.shape[1] or inlier.sum() <= law.axes.shape[1]:
        return found
    norms = _norms(law.fill(X, gaps).X) if found.relative else np.ones(len(X))
    rows = X[inlier] / norms[inlier, None]
    law = likeliest(rows, Gaps(rows), count[inlier], law, moves=found.affine)
    return found._replace(law=law)._with_noise(X, gaps)


def _change(before: _Found | None, found: _Found) -> tuple[float, float]:
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


# -- what is learned -------------------------------------------------------------------------------


def _check(model: Any, gaps: Gaps) -> None:
    empty = np.flatnonzero(gaps.missing.all(axis=0))
    if len(empty):
        names = getattr(model, "feature_names_in_", None)
        name = empty[0] if names is None else f'"{names[empty[0]]}"'
        more = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        raise InputError(f"Column {name}{more} of X has no observed entry. Leave it out.")
    model.n_missing_ = int(gaps.n_missing.sum())


def _learn(
    model: Any, found: _Found, X: Array, Z: Array, weight: Array | None, place: Place
) -> None:
    """Turn the last candidate into attributes, and label all rows by their observed entries."""
    law = found.law
    if law.normals.shape[1]:
        order = np.argsort(-law.variances)
        location = law.centre if found.affine else None
        model.__dict__.update(bases(law.axes[:, order], law.normals, location, X.dtype, place))
        model._law = {"variances": law.variances[order], "noise": law.noise}
    _keep_laws(model, Z)
    chosen = _labelled(model, X, weight)
    model.__dict__.update({**chosen, "labels_": place.back(chosen["labels_"])})
    if model.noise_ > 0 and law.normals.shape[1]:
        model.noise_ = float(np.sqrt(law.noise * X.shape[1]))
    for one in model._others:
        if one is not None:
            table = _labelled(with_attributes(model, one), X, weight)
            one.update({**table, "labels_": place.back(table["labels_"] == 1)})
    for seen, table in zip(model.structures_, model._others, strict=True):
        inlier = model.labels_ == 1 if table is None else table["labels_"]
        seen["members"] = int(inlier.sum())
    _, share = model._complete(X, joint=True)
    model.undecided_ = np.flatnonzero(share == 0)
    if n := len(model.undecided_):
        shown = ", ".join(str(i) for i in model.undecided_[:SHOWN])
        warnings.warn(
            f"{n} of {len(X)} rows have too few observed entries to be compared with a subspace of "
            f"codimension {model.codimension_} ({shown}{', ...' if n > SHOWN else ''}; all in "
            "undecided_). They took no part, and have the label +1.",
            MissingWarning,
            stacklevel=5,
        )


def _labelled(model: Any, X: Array, weight: Array | None) -> dict[str, Any]:
    """Return threshold, labels and counted distances of all rows."""
    scores, known = model._scores(X)
    distance, some = -to_numpy(scores), slice(None) if known is None else known
    w = None if weight is None else to_numpy(weight)[some]
    limit = threshold_of(model, distance[some], model.threshold_, w)
    table: dict[str, Any] = {"threshold_": limit, "offset_": -limit}
    if known is not None:
        distance = np.where(known, distance, 0.0)
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
    tables = [one for one in (vars(model), *model._others) if one is not None]
    for table in tables:
        if table.get("_law") is not None:
            continue
        affine = table.get("affine_", model.affine_)
        Y = Z - to_numpy(table["location_"])
        if model.normalize and not affine:
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
