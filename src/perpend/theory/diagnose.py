"""Which guarantees of the theory cover a fitted model, in words.

The theorems are about the true inliers, outliers and subspace, which are unknown. Here those of a
fitted model take their place. What is certified is therefore certified for the recovered split:
*if* the model is right about the rows, the theory covers it. All conditions are sufficient and none
is necessary, so "not certified" says nothing against a model.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from perpend._deprecation import removed_parameters
from perpend._typing import Array, RandomState
from perpend.exceptions import InputError
from perpend.geometry import as_generator
from perpend.theory.conditions import Theorem1, cone_probability, theorem1, widest_start
from perpend.theory.discrete import outlier_error_bound
from perpend.theory.recovery import best_schedule, corrected_theorem7
from perpend.theory.statistics import (
    Estimate,
    Statistics,
    Values,
    complement_error,
    statistics,
)

PROBABILITY = 0.99  # that all random starts are at most as wide as assumed


class Verdict(Enum):
    """What is known about a sufficient condition; no value means that it is false.

    The conditions are far from necessary, so a method may well succeed where none is certified.
    """

    CERTIFIED = "certified"
    ESTIMATED = "holds for the estimates, not certified"
    OPEN = "not certified"

    @classmethod
    def of(cls, *, estimated: bool, certified: bool) -> "Verdict":
        """Return the verdict on a condition that was tried with estimates and with proven bounds.

        >>> Verdict.of(estimated=True, certified=False).value
        'holds for the estimates, not certified'
        """
        if certified:
            return cls.CERTIFIED
        return cls.ESTIMATED if estimated else cls.OPEN


@dataclass(frozen=True)
class Guarantee:
    """One condition of the theory, what it comes to here, and whether it is certified."""

    name: str  # what it promises, in words
    condition: str  # as a formula
    numbers: str  # the same with the numbers of these rows
    verdict: Verdict  # whether it holds, by estimates or by proof

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict.value}\n    {self.condition}\n    {self.numbers}"


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found; ``print`` it."""

    statistics: Statistics | None  # None if there is nothing to estimate
    guarantees: tuple[Guarantee, ...]  # one for each condition
    remarks: tuple[str, ...]  # what to know about them, in sentences

    def summary(self) -> str:
        """Return the diagnosis as text."""
        parts = [] if self.statistics is None else [_table(self.statistics)]
        parts += map(str, self.guarantees)
        return "\n\n".join([*parts, "\n".join(f"- {remark}" for remark in self.remarks)])

    def __str__(self) -> str:
        return self.summary()


@removed_parameters(
    "C1", "C2", until="0.4", instead="leave it out, as the constants of Theorem 7 are known now."
)
def diagnose(
    model: Any,
    X: Array,
    *,
    n_starts: int = 20,
    n_samples: int = 1000,
    random_state: RandomState = 0,
) -> Diagnosis:
    """Estimate the theory's statistics on the model's own split, and say what they guarantee.

    Parameters
    ----------
    model : fitted estimator
        With `normals_`, `components_`, `directions_` and `predict`, such as ``DPCP().fit(X)``.
    X : array-like of shape (n_samples, n_features)
        The rows to split; usually those that the model was fitted to. All count alike: the theory
        has no weights.
    n_starts, n_samples : int
        Effort of the searches, see `statistics`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> X = np.vstack([np.eye(3)[:2], [[1, 1, 0], [1, -1, 0], [0, 1, 1]]])
    >>> model = SimpleNamespace(
    ...     components_=np.eye(3)[:2],
    ...     normals_=np.eye(3)[2:],
    ...     directions_=np.eye(3)[2:],
    ...     predict=lambda X: np.where(X[:, 2] == 0, 1, -1),
    ... )
    >>> diagnose(model, X).guarantees[0].verdict
    <Verdict.CERTIFIED: 'certified'>
    """
    components, normals = _checked(model, X)
    inlier = np.asarray(model.predict(X)) == 1
    rows = np.asarray(X, dtype=np.float64) - np.asarray(getattr(model, "location_", 0.0))
    d, c = len(components), len(normals)
    void = _nothing_to_say(d, c, int(inlier.sum()))
    if void:
        return Diagnosis(None, (), (void,))
    rng = as_generator(random_state)
    found = statistics(
        rows[inlier],
        rows[~inlier],
        components.T,
        n_starts=n_starts,
        n_samples=n_samples,
        random_state=rng,
    )
    across = complement_error(rows[~inlier], normals.T, n_samples=n_samples, random_state=rng)
    k = max(len(model.directions_), c)
    widest = widest_start(found.estimated, k, PROBABILITY)
    # As estimated, and as proven.
    both = [(v, theorem1(v, np.array([widest]))) for v in (found.estimated, found.certified)]
    guarantees = (_balance(both), _some(both, k), _all(both, k, widest), _span(found, across, k))
    return Diagnosis(found, guarantees, _remarks(model, found))


# -- the guarantees --------------------------------------------------------------------------------

Both = Sequence[tuple[Values, Theorem1]]


def _balance(both: Both) -> Guarantee:
    (_, estimated), (_, certified) = both
    return Guarantee(
        "Inliers outweigh the outliers (Theorem 1)",
        "N c_X,min >= N eta_X + M eta_O",
        f"estimates: {estimated.pull:.4g} against {estimated.push:.4g}; "
        f"proven: at least {certified.pull:.4g} against at most {certified.push:.4g}",
        Verdict.of(estimated=estimated.dominates, certified=certified.dominates),
    )


def _some(both: Both, k: int) -> Guarantee:
    inside = [cone_probability(values) for values, _ in both]
    cones = [_degrees(t.cone) for _, t in both]
    estimated, certified = (
        t.pull > t.push and (1 - p) ** k <= 1 - PROBABILITY
        for p, (_, t) in zip(inside, both, strict=True)
    )
    return Guarantee(
        f"At least one of {k} descents from random starts ends at a normal, with probability "
        f"{PROBABILITY} (Theorem 1)",
        "the above, and a start with tan(theta_0) < N c_X,min / (N eta_X + M eta_O)",
        f"estimates: within {cones[0]} degrees of the complement, where a start is with "
        f"probability {inside[0]:.3f}; proven: {cones[1]} degrees, probability {inside[1]:.3f}",
        Verdict.of(estimated=estimated, certified=certified),
    )


def _all(both: Both, k: int, widest: float) -> Guarantee:
    (_, estimated), (_, certified) = both
    verdict = Verdict.of(estimated=estimated.holds, certified=certified.holds)
    numbers = (
        f"with probability {PROBABILITY} the widest start is within {_degrees(widest)} degrees"
    )
    if verdict is not Verdict.OPEN:
        schedule = (certified if certified.holds else estimated).schedule()
        numbers += (
            f"; with steps of {schedule.mu0:.3g} for K0 = {schedule.K0} iterations, the angle then "
            f"halves every K* = {schedule.K_star} iterations"
        )
    return Guarantee(
        f"All {k} descents from random starts end at normals (Assumption 1)",
        "the above for every start",
        numbers,
        verdict,
    )


def _span(found: Statistics, across: Estimate, k: int) -> Guarantee:
    """Evaluate the corrected Theorem 7; half of what may go wrong is a start outside the cone."""
    half = (1 - PROBABILITY) / 2
    tried = []
    for v, error in ((found.estimated, across.value), (found.certified, across.worst)):
        conditions = theorem1(v, np.array([widest_start(v, k, 1 - half)]))
        how: dict[str, float] = {"failure": half, "error": min(error, outlier_error_bound(v))}
        schedule = best_schedule(v, conditions) if conditions.holds else None
        tried.append(None if schedule is None else corrected_theorem7(v, schedule, k, **how))
    estimated, certified = (result is not None and result.holds for result in tried)
    numbers = "not evaluated, as it builds on the one above"
    if tried[0] is not None:
        numbers = f"estimates, best steps: {tried[0].left:.3g} against {tried[0].right:.3g}"
    return Guarantee(
        f"The descents span the whole complement, with probability {PROBABILITY} (Theorem 7, "
        "corrected)",
        "(sqrt(k) - sqrt(c) - t) / (sqrt(D) + s) > sqrt(k) kappa max ||P_perp e_O||, and all "
        "starts inside the cone",
        numbers,
        Verdict.of(estimated=estimated, certified=certified),
    )


# -- words -----------------------------------------------------------------------------------------


def _remarks(model: Any, found: Statistics) -> tuple[str, ...]:
    remarks = [
        "All of this is about the inliers and outliers as the model splits them.",
        "The theory has no noise: inliers are projected onto the recovered subspace, and all "
        "rows are scaled to norm one.",
        "Both theorems are about plain descents with geometrically diminishing steps; other step "
        "rules, like the model's own line search, are not strictly covered.",
        "The conditions are sufficient and far from necessary: a model that is not certified may "
        "well be right.",
    ]
    if not hasattr(model, "n_starts"):
        remarks.append(
            f"{type(model).__name__} did not find its normals by such descents; the guarantees "
            "say what descents would do on these rows."
        )
    if not getattr(model, "normalize", True):
        remarks.append("The model was fitted with normalize=False; the theory is for unit rows.")
    if found.n_outliers == 0:
        remarks.append("There are no outliers, so the statistics of outliers are zero.")
    return tuple(remarks)


def _nothing_to_say(d: int, c: int, n_inliers: int) -> str:
    if c == 0:
        return "The codimension is 0: there are no normals, and the theory has nothing to certify."
    if n_inliers == 0:
        return "The model sees no inliers in X, so there is nothing for the theory to work with."
    if d == 0:
        return (
            "The dimension is 0: the subspace is the origin, every direction is a normal, and "
            "there is nothing to certify."
        )
    return ""


def _table(found: Statistics) -> str:
    names = ("c_X,min", "c_X,max", "c_O,min", "c_O,max", "eta_X", "eta_O")
    head = (
        f"{found.n_inliers} inliers in dimension {found.dimension} of {found.n_features}, "
        f"{found.n_outliers} outliers"
    )
    lines = [f"  {name:8} {estimate}" for name, estimate in zip(names, found, strict=False)]
    return "\n".join([head, *lines])


def _degrees(tangent: float) -> str:
    return f"{math.degrees(math.atan(tangent)):.1f}"


def _checked(model: Any, X: Array) -> tuple[Array, Array]:
    """Return components (d, D) and normals (c, D), or say what is wrong with the model or X."""
    needed = ("normals_", "components_", "directions_")
    missing = [name for name in needed if getattr(model, name, None) is None]
    if missing:
        raise InputError(
            f"model is not fitted: {type(model).__name__} has no {', '.join(missing)}. "
            "Call model.fit(X) first."
        )
    components = np.asarray(model.components_, dtype=np.float64)
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] != components.shape[1]:
        raise InputError(
            f"X has shape {shape}; expected (n_samples, {components.shape[1]}): rows like those "
            "that the model was fitted to."
        )
    return components, np.asarray(model.normals_, dtype=np.float64)
