"""What a fit has learned, as attributes: of the chosen structure, and of every other one it saw.

A fitted model is its parameters and a table of attributes. A linear solution and an affine fit both
lead to a `Subspace`, and `attributes` turns that into such a table: for the chosen structure, and
once more for each other one, so that `choose` has nothing to compute and needs no data.
"""

import copy
from collections.abc import Iterable, Sequence
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from scipy import special
from sklearn.utils.extmath import svd_flip

from perpend._docs import EVIDENCE
from perpend._fitted import FittedSubspace
from perpend._groups import Groups, Seen, weighed
from perpend._spread import with_relations
from perpend._typing import Array
from perpend.exceptions import InputError, of_earlier_version
from perpend.geometry import namespace
from perpend.kernels import logarithmic_bins
from perpend.rows import RowSource
from perpend.rows.centred import centred_norms
from perpend.rows.kinds import Place, like, per_row, to_numpy
from perpend.rows.preparation import row_norms
from perpend.rows.views import whole_view
from perpend.solvers import Solution, TwoGroups
from perpend.structure import AffineFit
from perpend.structure.labels import (
    OutlierOdds,
    inlier_noise,
    labels,
    normals_error,
    outlier_law,
    solution_odds,
)
from perpend.structure.law import distance_edges

OF_SUBSPACE = (  # what every structure has of its own,
    *("components_", "normals_", "n_components_", "codimension_", "location_", "intercept_"),
    *("confidence_", "evidence_", "doubts_", "converged_", "noise_", "threshold_", "offset_"),
    *("labels_", "_distance_record", "_n_features_out", "_normals_error", "_outlier_odds"),
    *("_inlier_variances", "_spread"),
)
# and what all have in common where descents proposed them.
OF_DESCENTS = ("directions_", "singular_values_", "n_starts_", "objective_", "n_iter_")

Model = TypeVar("Model", bound=FittedSubspace)


class DistanceRecord(NamedTuple):
    """Counted distances, and the two groups that were fitted to them, in the user's units."""

    edges: Array  # (m,) upper edges of the bins, which grow geometrically
    counts: Array  # (m,) weight of the rows in each bin
    n_inliers: float  # by the two-group model
    n_outliers: float
    scale: float  # of the inliers' noise in one coordinate
    norms: Array  # that stand for those of all rows
    codimension: int  # inside the span of the rows
    dimension: int

    @classmethod
    def of(
        cls, groups: TwoGroups | None, norms: Array, sizes: tuple[int, int], unit: float
    ) -> Self | None:
        """Put it together from what a fit has; `unit` turns norms and distances into the user's."""
        if groups is None:  # all rows lie on the subspace
            return None
        total = float(np.sum(groups.counts))
        return cls(
            edges=groups.edges * unit,
            counts=groups.counts,
            n_inliers=groups.share * total,
            n_outliers=(1 - groups.share) * total,
            scale=groups.scale * unit,
            norms=norms * unit,
            codimension=sizes[0],
            dimension=sizes[1],
        )

    @property
    def exact(self) -> bool:
        """Whether the inliers have no noise but rounding errors."""
        return bool(self.scale <= self.edges[1])

    def counted(self, distance: Array, weight: Array | None = None) -> Self:
        """Count other distances (n,); bins are added where some are farther away."""
        edges, growth = self.edges, self.edges[1] / self.edges[0]
        largest = float(np.max(distance, initial=0.0))
        if largest > edges[-1]:
            more = int(np.ceil(np.log(largest / edges[-1]) / np.log(growth)))
            edges = np.append(edges, edges[-1] * growth ** np.arange(1.0, more + 1))
        bins = logarithmic_bins(np.asarray(distance, dtype=float), edges)
        return self._replace(edges=edges, counts=np.bincount(bins, weight, minlength=len(edges)))

    def expected(self, edges: Array) -> tuple[Array, Array]:
        """Return how many inliers and outliers the model expects up to each of the edges.

        P(c/2, J^2 / 2 s^2) of the inliers, with the incomplete gamma function P; the outliers' law
        has no parameter.
        """
        inliers = special.gammainc(self.codimension / 2, np.square(edges / self.scale) / 2)
        outliers = outlier_law(edges, self.norms, self.codimension, self.dimension)
        return self.n_inliers * inliers, self.n_outliers * outliers


class Data(NamedTuple):
    """What was fitted."""

    X: Array
    weight: Array | None
    place: Place
    groups: Groups | None = None


class Subspace(NamedTuple):
    """A solution of either kind, with what is needed in the user's units."""

    solution: Solution
    dtype: Any  # of the data
    unit: float  # that turns the solution's distances into those that decide the labels
    location: Array | None  # (D,), None where it runs through the origin
    noise: float
    odds: OutlierOdds  # with the threshold
    distance: Array | None  # (n,) where they are known already
    record: DistanceRecord | None


def linear_subspace(model: Any, solution: Solution, rows: RowSource, data: Data) -> Subspace:
    """Return a linear solution, whose distances are relative if rows were normalised."""
    d = solution.components.shape[1]
    # A quantile is the distance of one row, and must be exactly what `predict` computes.
    # Rows of weight zero have a scale of their own if rows are not normalised.
    own_scale = data.weight is not None and not model.normalize
    # The solver's distances leave out the normals outside the span of the rows, along which there
    # are only rounding errors. `predict` uses all normals.
    outside = solution.rank < len(solution.normals)
    known = solution.distances
    if own_scale or outside or model.contamination is not None:
        known = None
    exact = float(distance_edges(float(rows.norms[-1]), rows.dtype)[0])
    return Subspace(
        solution=solution,
        dtype=rows.dtype,
        unit=rows.unit,
        location=None,
        noise=inlier_noise(solution, rows.unit, linear=True, unit_rows=len(rows.norms) == 1),
        odds=solution_odds(solution, exact, rows.unit),
        distance=None if known is None else _in_units(per_row(rows, known), rows.unit),
        record=DistanceRecord.of(solution.groups, rows.norms, (solution.rank - d, d), rows.unit),
    )


def _in_units(distance: Array, unit: float) -> Array:
    return distance if unit == 1 else distance * unit  # there may be very many rows


def affine_subspace(found: AffineFit, data: Data) -> Subspace:
    """Return an affine fit; its distances are Euclidean."""
    evidence = {**found.solution.evidence, **found.evidence}
    solution = found.solution._replace(evidence=evidence, rank=len(found.solution.normals))
    return Subspace(
        solution=solution,
        dtype=to_numpy(data.X[:0]).dtype,
        unit=1.0,
        location=found.location,
        noise=inlier_noise(solution, 1.0, linear=False),
        odds=solution_odds(solution, found.floor, 1.0),
        distance=None,
        record=DistanceRecord.of(solution.groups, found.norms, found.sizes, 1.0),
    )


def attributes(model: Any, found: Subspace, data: Data) -> dict[str, Any]:
    """Return all that is learned about a subspace, by name."""
    table = _bases(found, data.place)
    distance, limit, record = found.distance, found.odds.threshold, found.record
    if distance is None or data.groups is not None:  # rows of a group: just as `predict` sees them
        distance = with_attributes(model, table)._across(data.X)
    if record is not None and found.location is not None:
        # The final steps leave out rows that are far away.
        record = record.counted(to_numpy(distance), data.weight)
    table |= {
        "_outlier_odds": found.odds._asdict(),
        "_distance_record": None if record is None else record._asdict(),
        "_spread": None,
    }
    if model._spread is not None:
        spread = with_relations(model._both, with_attributes(model, table), data.X, data.weight)
        table["_spread"] = spread._asdict()
        distance = -with_attributes(model, table)._complete_scores(data.X)
        limit = float(np.sqrt(spread.limit))
    if data.groups is not None:
        own = data.groups.distance(to_numpy(distance), with_attributes(model, table))
        distance = like(own, data.X)
    threshold = threshold_of(model, distance, limit, data.weight)
    error = None
    if data.groups is None:  # rows of a group are not independent
        error = normals_error(found.solution, affine=found.location is not None)
    return {
        **table,
        "noise_": found.noise,
        "threshold_": threshold,
        "offset_": -threshold,
        "labels_": data.place.back(labels(distance, threshold)),
        "_normals_error": None if error is None else error._asdict(),
        "_inlier_variances": found.solution.variances,
    }


def rows_near(model: Any, found: Subspace, data: Data) -> Array:
    """Say which rows (n,) are near a subspace, each by itself."""
    J = to_numpy(with_attributes(model, _bases(found, data.place))._across(data.X))
    return np.asarray(found.odds.threshold >= J)


def in_groups(model: Any, found: Subspace, data: Data) -> Subspace:
    """Return a subspace whose confidence counts groups of rows, not rows."""
    record, affine = found.record, found.location is not None
    seen: Seen | int = found.solution.components.shape[1] + affine
    assert data.groups is not None
    if record is not None:
        J = to_numpy(with_attributes(model, _bases(found, data.place))._across(data.X))
        lengths = np.ones(1)
        if affine:
            centre = whole_view(data.X, None, np.random.default_rng(0)).centre
            lengths = to_numpy(centred_norms(data.X, centre)).astype(float)
        elif not model.normalize:
            lengths = to_numpy(row_norms(data.X)).astype(float)
        sizes = (record.codimension, record.dimension - affine)
        limits = (record.scale, found.odds.threshold)
        seen = Seen(J.astype(float), lengths[lengths > 0], sizes, *limits, affine)
    solution = weighed(found.solution, data.groups, seen, data.X, data.weight)
    if model._given_codimension() != "auto":  # whoever gave it hears no doubts about it
        solution = solution._replace(doubts=found.solution.doubts)
    return found._replace(solution=solution)


def frame(
    components: Array, normals: Array, location: Array | None, dtype: Any, place: Place
) -> dict[str, Any]:
    """Return a subspace with bases as rows, in the precision of the data."""
    as_given = partial(_as_given, dtype=dtype, place=place)

    def as_row(A: Array) -> Array:
        # The sign of a basis vector is arbitrary: make its largest entry positive.
        if A.shape[1]:
            A, _ = svd_flip(A, None, u_based_decision=True)
        return as_given(A.T)

    affine, components, normals = location is not None, as_row(components), as_row(normals)
    intercept = as_given(np.zeros(len(normals)))
    if location is None:
        location = as_given(np.zeros(normals.shape[1]))
    else:
        # In double precision also where the data is not: the offset may be large.
        intercept = place.back(to_numpy(normals).astype(float) @ location)
        location = place.back(location)
    return {
        "affine_": affine,
        "components_": components,
        "normals_": normals,
        "n_components_": len(components),
        "codimension_": len(normals),
        "location_": location,
        "intercept_": intercept,
        "_n_features_out": len(components),
    }


def _as_given(A: Array, dtype: Any, place: Place) -> Array:
    return place.back(np.array(A, dtype=dtype, order="C"))


def _bases(found: Subspace, place: Place) -> dict[str, Any]:
    """Return the subspace and how it was found."""
    solution, as_given = found.solution, partial(_as_given, dtype=found.dtype, place=place)
    return {
        **frame(solution.components, solution.normals, found.location, found.dtype, place),
        "directions_": as_given(solution.directions.T),
        "singular_values_": as_given(solution.singular_values),
        "n_starts_": solution.directions.shape[1],
        "confidence_": solution.confidence,
        "evidence_": {key: solution.evidence.get(key, np.nan) for key in EVIDENCE},
        "doubts_": (*solution.doubts, *solution.quiet_doubts),
        "objective_": solution.objective * found.unit,
        "n_iter_": max(1, solution.n_iter),
        "converged_": solution.converged,
    }


def threshold_of(model: Any, distance: Array, found: float, weight: Array | None) -> float:
    """Return the threshold that was found, or given, or that a given share of rows is beyond."""
    if model.contamination is not None:
        kept = 1 - model.contamination
        values = to_numpy(distance)
        return float(np.quantile(values, kept, method="inverted_cdf", weights=weight))
    return found if model.threshold == "auto" else float(model.threshold)


# -- several structures ----------------------------------------------------------------------------


def structures(found: Subspace, chosen: dict[str, Any]) -> list[dict[str, Any]]:
    """List the structures that were seen; only the chosen one if no others were looked for."""
    solution = found.solution
    seen = [dict(one) for one in solution.structures]
    if not seen and solution.groups is not None:
        exact = solution.groups.is_exact
        seen = [
            {
                "codimension": chosen["codimension_"],
                "noise": 0.0 if exact else float(solution.groups.scale * found.unit),
                "members": int((chosen["labels_"] == 1).sum()),
                "score": float(solution.support) if np.isfinite(solution.support) else 0.0,
                "length": float(np.log(max(solution.gap, 1.0)) / 2),
                "chosen": True,
            }
        ]
    return seen


def others_in_order(
    seen: list[dict[str, Any]], chosen: dict[str, Any], others: Sequence[dict[str, Any]]
) -> list[dict[str, Any] | None]:
    """Return what differs from the chosen structure in each one seen; None for the chosen one.

    All have the same names, so that one can take the place of another.
    """
    directions = to_numpy(chosen["directions_"])
    same = all(np.array_equal(to_numpy(one["directions_"]), directions) for one in others)
    names = OF_SUBSPACE if same else OF_SUBSPACE + OF_DESCENTS
    kept = iter([_kept(one, names) for one in others])
    return [None if one["chosen"] else next(kept) for one in seen]


def as_confirmed(
    seen: list[dict[str, Any]], chosen: dict[str, Any], others: list[dict[str, Any] | None]
) -> list[dict[str, Any]]:
    """Return the structures with noise and members as all rows show them, not only a sample."""
    records = [(other or chosen)["_distance_record"] for other in others]
    return [
        one
        if record is None
        else {
            **one,
            "noise": 0.0 if record["scale"] <= record["edges"][1] else float(record["scale"]),
            "members": round(float(record["n_inliers"])),
        }
        for one, record in zip(seen, records, strict=True)
    ]


def _kept(table: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return some attributes, with inliers marked by a byte each: there may be many rows."""
    return {**{name: table[name] for name in names}, "labels_": table["labels_"] == 1}


def choose(model: Model, i: int) -> Model:
    """Return a model of the structure at place i of those that were seen."""
    seen = getattr(model, "structures_", None)
    if seen is None:
        raise of_earlier_version("only the chosen subspace")
    if not seen:
        raise InputError(f"i={i!r}; structures_ is empty: the fit saw no other subspace.")
    if not isinstance(i, Integral) or not -len(seen) <= i < len(seen):
        raise InputError(f"i={i!r}; expected a place in structures_, from 0 to {len(seen) - 1}.")
    new, old = int(i) % len(seen), next(j for j, one in enumerate(seen) if one["chosen"])
    table: dict[str, Any] = {}
    if new != old:
        if not hasattr(model, "_others"):
            raise of_earlier_version("only the chosen subspace")
        others: list[Any] = list(model._others)
        table = others[new]
        others[old], others[new] = _kept(vars(model), table), None
        labels = namespace(table["labels_"]).where(table["labels_"], 1, -1)
        table = {**table, "labels_": labels, "_others": others}
        if getattr(model, "_stream", None) is not None:  # it is that of the other subspace
            table["_stream"] = None
    table["structures_"] = [{**one, "chosen": j == new} for j, one in enumerate(seen)]
    return with_attributes(model, table)


def with_attributes(model: Model, table: dict[str, Any]) -> Model:
    """Return a copy of a model with other attributes; whatever else it has, both share."""
    new = copy.copy(model)
    if hasattr(new, "_sklearn_output_config"):  # which set_output would change in place
        new._sklearn_output_config = copy.copy(new._sklearn_output_config)
    new.__dict__.update(table)
    return new
