"""Subspaces one after the other: the search of `perpend.structure`, with members taken away.

An estimator proposes, and the scale at which rows concentrate decides. Rows of two subspaces may
show their sum first, or something thick between them, so the members of every found subspace are
searched on their own; what some of them lie on as closely, or more closely, is taken.
"""

import math
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from perpend._typing import Array
from perpend.geometry import complement
from perpend.rows import rank_tolerance
from perpend.structure import Axes, Cloud, Decision, Profile, effort, find_structure, sample_size
from perpend.structure import constants as k
from perpend.structure.checks import beyond_clusters, beyond_edge, cluster_sizes
from perpend.structure.law import distance_edges
from perpend.structure.settle import Candidate, polish, settle, within

REPORTED_FROM = 0.5  # confidence: what is more likely wrong than right is not reported
ROUNDS = 2  # of sharing the rows out and weighing each subspace again


class Data(NamedTuple):
    """Rows as they are solved, and how much each counts."""

    X: Array  # (n, D)
    weight: Array  # (n,)
    share: Array  # (n,) as evidence: equal rows count once
    affine: bool = False  # whether subspaces may miss the origin

    def some(self, chosen: Array) -> Self:
        """Return some of the rows, by a mask or their numbers."""
        X, weight, share, affine = self
        return type(self)(X[chosen], weight[chosen], share[chosen], affine)

    def mapped(self, T: Array) -> Self:
        """Return the rows in other coordinates, X @ T."""
        return self._replace(X=(self.X @ T).astype(self.X.dtype))

    def distances(self, one: Decision) -> Array:
        """Return the distance (n,) of each row to a subspace."""
        V = normals(one)
        return np.linalg.norm(self.X @ V - one.candidate.axes.centre @ V, axis=1)

    def near(self, one: Decision) -> Array:
        """Say which rows (n,) are near enough for members."""
        return self.distances(one) <= one.candidate.threshold

    def cloud(self) -> Cloud:
        """Return the rows as `perpend.structure` sees them."""
        X, weight = self.X.astype(float), self.weight / np.mean(self.weight)
        floor = float(distance_edges(1.0, self.X.dtype)[0])
        return Cloud(X, affine=self.affine, weight=weight, share=self.share, floor=floor)


def normals(one: Decision) -> Array:
    """Return the normals (D, c)."""
    return one.candidate.axes.A[:, : one.candidate.c]


def lifted(one: Decision, B: Array, rest: Array) -> Decision:
    """Return a subspace of the coordinates B (D, r) as one of all; the rest (D, k) are normals."""
    c, (centre, A, variances) = one.candidate.c, one.candidate.axes
    A = np.hstack([B @ A[:, :c], rest, B @ A[:, c:]])
    variances = np.insert(variances, c, np.zeros(rest.shape[1]))
    axes = Axes(B @ centre, A, variances)
    return one._replace(candidate=one.candidate._replace(c=c + rest.shape[1], axes=axes))


class View(NamedTuple):
    """Members of a subspace in other coordinates, and what is seen there."""

    rows: Data
    inner: Decision | None
    thin: float  # of the noise so far: what is no thinner is no part of its own


class Search(NamedTuple):
    """How subspaces are found."""

    estimator: Any  # a SubspaceEstimator of our own, with its own threshold
    rng: np.random.Generator

    @property
    def fixed(self) -> int | None:
        """The codimension, if the estimator was given one."""
        codimension = self.estimator._given_codimension()
        return None if codimension == "auto" else int(codimension)

    def find_all(self, data: Data, most: int) -> tuple[list[Decision], bool]:
        """Take one subspace after the other away; then weigh each without the others' rows.

        Also say whether `most` ended the search, with enough rows left for another subspace.
        """
        decisions: list[Decision] = []
        taken: list[Data] = []  # members of each
        rest = data
        apparent = 0
        while max(apparent, len(decisions) - apparent) < most and len(rest.X) >= 2:
            new = self.find(rest, self._proposed(rest))
            if new is None or not np.any(near := _to_take(rest, new)):
                break
            if not _is_shadow(new, rest.some(near), decisions, taken):
                decisions.append(new)
                apparent += _is_apparent(new)
                taken.append(rest.some(near))
            rest = rest.some(~near)
        limited = max(apparent, len(decisions) - apparent) == most and len(rest.X) >= 2
        labels, found = None, decisions
        for _ in range(ROUNDS):
            before, labels = labels, share_out(data, decisions)
            if before is not None and np.array_equal(labels, before):
                break
            # Rows of what is only apparent are nobody's.
            nobody = [j for j, one in enumerate(decisions) if _is_apparent(one)]
            free = np.isin(labels, [-1, *nobody])
            again = [self._again(data, labels == j, free, one) for j, one in enumerate(decisions)]
            decisions = [one for one in again if one is not None]
        if not any(_is_apparent(one) for one in found):
            return decisions, limited
        # Once rows are taken away there, what is left has edges: all rows must show a subspace.
        cloud = data.cloud()
        kept = [
            one
            for one in decisions
            if one.candidate.is_exact
            or (not _is_apparent(one) and _stands_out(cloud, one.candidate))
        ]
        return kept, limited

    def _proposed(self, data: Data) -> Array:
        """Return the rows (n,) that a fit takes for inliers; the search checks them itself."""
        self.estimator.set_params(random_state=int(self.rng.integers(2**31)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # not sure, or not converged
            return self.estimator.fit(data.X, sample_weight=data.weight).labels_ == 1

    def _again(self, data: Data, own: Array, free: Array, one: Decision) -> Decision | None:
        """Score a subspace again by its own rows (n,) and those on none; None without any.

        If these rows show another subspace first, or the slab around it, it stays as it was.
        """
        left = own | free
        new = self.weigh(data.some(left), own[left]) if np.sum(own) > 1 else None
        if new is None:
            return None
        is_thicker = new.candidate.sigma > k.SAME_NOISE * one.candidate.sigma
        if is_thicker or np.mean(data.some(own).near(new)) < 0.5:
            return one
        return new if _counts(new) else None

    def find(
        self, data: Data, proposed: Array | None = None, *, stretched: bool = False
    ) -> Decision | None:
        """Return a subspace that holds no smaller and no thinner one, or None.

        `stretched` says whether the rows have equal variances already.
        """
        inner = decision = self.weigh(data, proposed)
        sigma, least = math.inf, None
        while inner is not None and self.fixed is None:
            decision, sigma = inner, min(sigma, inner.candidate.sigma)
            near = np.flatnonzero(data.near(decision))
            least = k.LEAST_SHARE * len(near) if least is None else least
            inner = self._inside(data, decision, near, sigma, least, stretched=stretched)
        return decision if decision is not None and _counts(decision) else None

    def _inside(
        self,
        data: Data,
        outer: Decision,
        near: Array,
        sigma: float,
        least: float,
        *,
        stretched: bool,
    ) -> Decision | None:
        """Return what at least so many of the rows near a subspace lie on; sigma is the noise."""
        for seen, inner, thin in self._views(data.some(near), outer, stretched):
            if inner is None:
                continue
            # As all rows see what was found among some of them.
            cloud, c = data.cloud(), data.X.shape[1] - (seen.X.shape[1] - inner.candidate.c)
            part = np.zeros(len(data.X))
            part[near[seen.near(inner)]] = 1.0
            axes = cloud.pca(part)
            size = max(math.sqrt(float(np.mean(axes.variances[:c]))), cloud.floor)
            candidate = within(cloud, c, settle(cloud, axes, c, size))
            if candidate.n_members <= cloud.free[c - 1]:  # any subspace runs through so many
                continue
            # A row of pixels, a ring of a scanner or one step of a rounded depth is thinner than
            # the plane that it is in; the plane is more.
            if candidate.n_members < least:
                continue
            if candidate.is_exact:
                return inner._replace(candidate=candidate)
            if candidate.sigma > thin * sigma:
                continue
            if _is_apparent(outer) and not _stands_out(cloud, candidate):
                continue
            spread = beyond_clusters(cloud, candidate.axes, c, candidate.sigma)
            new = inner.weighed(inner.facts._replace(spread=spread), candidate)
            if _counts(new) and not _is_apparent(new):
                return new
        return None

    def _views(self, own: Data, outer: Decision, stretched: bool) -> Iterator[View]:
        """Yield the members of a subspace as they are searched on their own.

        Along the subspace, what is as thin is a part of it. Where they are stretched to equal
        variances, noise looks the same everywhere, but several thin subspaces do not. At last, in
        few columns, they are searched like any other rows, as peeling would have found them.
        """
        along = own.mapped(complement(normals(outer)))
        yield View(along, self.find(along, stretched=stretched), k.AS_THIN)
        if len(own.X) == 0 or stretched or outer.candidate.is_exact:
            return
        alike = own.mapped(_stretch(own))
        yield View(alike, self.find(alike, stretched=True), k.FEWER)
        if own.X.shape[1] <= effort.FEW_COLUMNS:
            again = self.weigh(own, self._proposed(own))
            yield View(own, again if again is not None and _counts(again) else None, k.FEWER)

    def weigh(self, data: Data, part: Array | None) -> Decision | None:
        """Return the structure of the rows, if it is significant; it may be that of a part (n,)."""
        (n, D), fixed = data.X.shape, self.fixed
        if n <= D + int(data.affine) or D < 2 or not (fixed is None or 0 < fixed < D):
            return None
        first = min(n, sample_size(D))
        for size in sorted({first, min(n, max(first, effort.MOST_PER_COLUMN * D))}):
            drawn = np.sort(self.rng.choice(n, size, replace=False, shuffle=False))
            cloud = data.some(drawn).cloud()
            profile, proposals = Profile(cloud), []
            if part is not None:
                profile.add(cloud.pca(part[drawn].astype(float)))
                proposals = [1]
            decision = find_structure(profile, self.rng, proposals=proposals, fixed=fixed)
            if decision is not None and decision.facts.is_significant:
                break
        else:
            return None
        # Others, and smaller ones inside, are searched here anyway.
        facts = decision.facts._replace(agreeing=2, rival_subspace=False, n_smaller=None)
        decision = _with_end(cloud, decision.weighed(facts, decision.candidate))
        n_near = np.count_nonzero(_near(cloud, decision))
        if n_near <= D - decision.candidate.c:  # any subspace runs through so many
            return None
        if size == n or decision.candidate.is_exact:
            return decision
        return _by_all_rows(data.cloud(), decision)


def _stands_out(cloud: Cloud, own: Candidate) -> bool:
    """Say whether rows are denser near a subspace than beyond, on each side of it.

    Members of any slab lie near a plane, if no other rows are counted: where the slab is the edge
    of a cloud, the plane must be one among all rows.
    """
    return beyond_edge(cloud, own.axes, own.c, own.threshold) >= k.LUCK


def _is_apparent(one: Decision) -> bool:
    """Say whether it may be the edge of a smooth cloud, or a few clusters.

    Its rows are taken away, but not reported: what is left may show others.
    """
    return any(doubt.name in {"edge", "clusters"} for doubt in one.doubts)


def _to_take(data: Data, one: Decision) -> Array:
    """Say which rows (n,) to take away: all members, or those in clusters where there are some."""
    near = data.near(one)
    if all(doubt.name != "clusters" for doubt in one.doubts):
        return near
    own, rows = one.candidate, np.flatnonzero(near)
    near[rows] = cluster_sizes(data.cloud(), own.axes, own.c, own.sigma, rows) > 0
    return near


def _counts(one: Decision) -> bool:
    """Say whether a subspace is to be taken away: a cloud that is merely longer than wide is not.

    Behind clusters there may be others, but not behind a single one that is all of the rows.
    """
    names, own = {doubt.name for doubt in one.doubts}, one.candidate
    are_some = "clusters" in names and own.n_members <= k.ALL_ROWS * len(own.J)
    return one.confidence >= REPORTED_FROM and ("ellipse" not in names or are_some)


def _by_all_rows(cloud: Cloud, one: Decision) -> Decision:
    """Return a sample's subspace as all rows place it."""
    c, w = one.candidate.c, _near(cloud, one).astype(float)
    p = polish(cloud, cloud.pca(w), c, w, max(k.LEAST_SHARE * cloud.n, 2.0 * (cloud.D - c)))
    return _with_end(cloud, one._replace(candidate=p))


def _with_end(cloud: Cloud, one: Decision) -> Decision:
    """Return a subspace whose members end no earlier than Gaussian noise does.

    Where hardly a row is between members and others, the density can't say where that is.
    """
    own = one.candidate
    end = settle(cloud, own.axes, own.c, own.sigma, least=own.sigma)
    return one._replace(candidate=own._replace(threshold=max(own.threshold, end.threshold)))


def _near(cloud: Cloud, one: Decision) -> Array:
    """Say which rows (n,) of the cloud are near enough for members."""
    own = one.candidate
    return cloud.squares(own.axes, own.c) <= own.threshold**2


def _is_shadow(new: Decision, own: Data, others: list[Decision], taken: list[Data]) -> bool:
    """Say whether members are the far end of another subspace, or the cloud that holds all others.

    At the new noise, they are then as near to the other one; or they are few beside its members,
    and no farther than where the density around these was seen: tails of its noise. Or all others,
    which are thinner, are as near to the new one: a cloud far from the origin is a slab.
    """

    def on(members: Data, subspace: Decision, reach: float = 0.0) -> bool:
        near2 = (k.SAME_SUBSPACE * new.candidate.sigma) ** 2 * subspace.candidate.c
        J2 = np.mean(np.square(members.distances(subspace)))
        return bool(max(near2, reach**2) >= J2)

    pairs = list(zip(others, taken, strict=True))
    is_cloud = all(
        on(members, new) and new.candidate.sigma > k.SAME_SUBSPACE * other.candidate.sigma
        for other, members in pairs
    )

    def is_tail(other: Decision, members: Data) -> bool:
        few = len(own.X) < k.LEAST_SHARE * len(members.X)
        return on(own, other, 2 * other.candidate.threshold if few else 0.0)

    return bool(others) and (is_cloud or any(is_tail(*pair) for pair in pairs))


def _stretch(data: Data) -> Array:
    """Return T (D, r) so that the rows of X @ T have second moments alike; r is their rank."""
    X = data.X - data.X.mean(axis=0) if data.affine else data.X
    variances, axes = np.linalg.eigh(X.T @ X / len(X))
    seen = variances > rank_tolerance(X.dtype) * variances[-1]
    return axes[:, seen] * np.sqrt(np.mean(variances[seen]) / variances[seen])


def share_out(data: Data, decisions: list[Decision]) -> Array:
    """Return the number of the subspace that each row belongs to, -1 for none.

    A row that several accept goes to the one that makes it most likely. With m members of noise s,
    spread evenly over the unit sphere of d dimensions, a row at distance J has the density

        m s^-c exp(-J^2 / (2 s^2)) / ((2 pi)^(c/2) area of the sphere)

    so that a row on an intersection goes to the smaller and thinner subspace. Members of an affine
    one are spread over a volume of (2 pi e)^(d/2) times their deviations along it.
    """
    labels, best = np.full(len(data.X), -1), np.full(len(data.X), -np.inf)
    for j, one in enumerate(decisions):
        c, s, J = one.candidate.c, one.candidate.sigma, data.distances(one)
        d, m = data.X.shape[1] - c, max(one.candidate.n_members, 1)
        log_area = math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)
        if data.affine:
            along = np.maximum(one.candidate.axes.variances[c:], np.finfo(float).tiny)
            log_area = float(np.log(2 * math.pi * math.e * along).sum()) / 2
        log_peak = math.log(m) - c * math.log(s * math.sqrt(2 * math.pi))
        likely = log_peak - log_area - (J / s) ** 2 / 2
        better = (one.candidate.threshold >= J) & (likely > best)
        labels[better], best[better] = j, likely[better]
    return labels
