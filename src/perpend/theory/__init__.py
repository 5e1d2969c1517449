"""Quantities, conditions and guarantees of the theory of DPCP.

`statistics` estimates how well inliers and outliers are spread; `theorem1`, `assumption1`, `lemma6`
and `theorem7` are the conditions made of them, and `corrected_theorem7` one without a gap;
`continuous_psgm` and `discrete_psgm` run what the proofs are about; `diagnose` says in words what
covers a fitted model.

Bases and directions are columns here, as in the solvers: pass ``model.normals_.T``. Misprints of
the paper are resolved in the docstring of the function that meets them.
"""

from perpend._docs import complete
from perpend.geometry import average_height
from perpend.theory._checks import EXPLAINED
from perpend.theory.conditions import (
    Schedule,
    Theorem1,
    assumption1,
    cone_probability,
    theorem1,
    widest_start,
)
from perpend.theory.continuous import (
    ContinuousRun,
    continuous_objective,
    continuous_psgm,
    continuous_values,
    projected_starts,
    start_tangents,
)
from perpend.theory.diagnose import Diagnosis, Guarantee, Verdict, diagnose
from perpend.theory.discrete import (
    DiscreteRun,
    FullRank,
    discrete_psgm,
    lemma6,
    outlier_error_bound,
    spans_complement,
)
from perpend.theory.recovery import (
    Growth,
    Theorem7,
    best_schedule,
    corrected_theorem7,
    delta_bound,
    growth,
    projected_singular_bound,
    start_singular_bound,
    theorem7,
)
from perpend.theory.spectral import spectral_limit, spectral_overlap
from perpend.theory.statistics import (
    CircleStatistics,
    Estimate,
    Statistics,
    Values,
    circle_statistics,
    complement_error,
    statistics,
)

__all__ = [
    "CircleStatistics",
    "ContinuousRun",
    "Diagnosis",
    "DiscreteRun",
    "Estimate",
    "FullRank",
    "Growth",
    "Guarantee",
    "Schedule",
    "Statistics",
    "Theorem1",
    "Theorem7",
    "Values",
    "Verdict",
    "assumption1",
    "average_height",
    "best_schedule",
    "circle_statistics",
    "complement_error",
    "cone_probability",
    "continuous_objective",
    "continuous_psgm",
    "continuous_values",
    "corrected_theorem7",
    "delta_bound",
    "diagnose",
    "discrete_psgm",
    "growth",
    "lemma6",
    "outlier_error_bound",
    "projected_singular_bound",
    "projected_starts",
    "spans_complement",
    "spectral_limit",
    "spectral_overlap",
    "start_singular_bound",
    "start_tangents",
    "statistics",
    "theorem1",
    "theorem7",
    "widest_start",
]

complete((globals()[name] for name in __all__), EXPLAINED)
