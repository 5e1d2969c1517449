"""How directions are found: one loop, its steps, and the solvers made of them."""

from perpend.solvers.loop import Progress, Run, Status, iterate
from perpend.solvers.psgm import given_starts, psgm, random_starts, spectral_starts
from perpend.solvers.result import Directions, Fit, Solution, TwoGroups
from perpend.solvers.riemannian import riemannian
from perpend.solvers.steps import (
    AutoStep,
    DecayStep,
    GeometricStep,
    MBLSStep,
    Outcome,
    StepRule,
    step_rule,
)

__all__ = [
    "AutoStep",
    "DecayStep",
    "Directions",
    "Fit",
    "GeometricStep",
    "MBLSStep",
    "Outcome",
    "Progress",
    "Run",
    "Solution",
    "Status",
    "StepRule",
    "TwoGroups",
    "given_starts",
    "iterate",
    "psgm",
    "random_starts",
    "riemannian",
    "spectral_starts",
    "step_rule",
]
