"""How directions are found: one loop, its steps, and the solvers made of them."""

from perpend.solvers.loop import Progress, Run, Status, iterate
from perpend.solvers.noise import inlier_noise
from perpend.solvers.odds import (
    OutlierOdds,
    exact_odds,
    outlier_odds,
    outlier_probability,
    solution_odds,
)
from perpend.solvers.outlier_law import label_threshold, outlier_law, outlier_misfit
from perpend.solvers.psgm import psgm
from perpend.solvers.result import Directions, Fit, Solution
from perpend.solvers.reweighted import (
    fit_from_spectrum,
    fit_subspace,
    groups_by_distance,
    principal_axes,
    turned_by,
    turned_to,
)
from perpend.solvers.riemannian import riemannian
from perpend.solvers.starts import given_starts, random_starts, spectral_starts
from perpend.solvers.steps import (
    AutoStep,
    DecayStep,
    GeometricStep,
    MBLSStep,
    Outcome,
    StepRule,
    step_rule,
)
from perpend.solvers.two_groups import TwoGroups, distance_edges, knots, two_groups

__all__ = [
    "AutoStep",
    "DecayStep",
    "Directions",
    "Fit",
    "GeometricStep",
    "MBLSStep",
    "Outcome",
    "OutlierOdds",
    "Progress",
    "Run",
    "Solution",
    "Status",
    "StepRule",
    "TwoGroups",
    "distance_edges",
    "exact_odds",
    "fit_from_spectrum",
    "fit_subspace",
    "given_starts",
    "groups_by_distance",
    "inlier_noise",
    "iterate",
    "knots",
    "label_threshold",
    "outlier_law",
    "outlier_misfit",
    "outlier_odds",
    "outlier_probability",
    "principal_axes",
    "psgm",
    "random_starts",
    "riemannian",
    "solution_odds",
    "spectral_starts",
    "step_rule",
    "turned_by",
    "turned_to",
    "two_groups",
]
