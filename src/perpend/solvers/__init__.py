"""How directions are found: one loop, its steps, and the solvers made of them."""

from perpend.solvers.dense import Dense as Dense
from perpend.solvers.dense import Urn as Urn
from perpend.solvers.dense import dense as dense
from perpend.solvers.loop import Callback as Callback
from perpend.solvers.loop import Directions as Directions
from perpend.solvers.loop import Fit as Fit
from perpend.solvers.loop import Progress as Progress
from perpend.solvers.loop import Run as Run
from perpend.solvers.loop import Solution as Solution
from perpend.solvers.loop import Status as Status
from perpend.solvers.loop import TwoGroups as TwoGroups
from perpend.solvers.loop import ended as ended
from perpend.solvers.loop import iterate as iterate
from perpend.solvers.psgm import given_starts as given_starts
from perpend.solvers.psgm import psgm as psgm
from perpend.solvers.psgm import random_starts as random_starts
from perpend.solvers.psgm import riemannian as riemannian
from perpend.solvers.psgm import spectral_starts as spectral_starts
from perpend.solvers.recursive import one_by_one as one_by_one
from perpend.solvers.steps import AutoStep as AutoStep
from perpend.solvers.steps import DecayStep as DecayStep
from perpend.solvers.steps import GeometricStep as GeometricStep
from perpend.solvers.steps import MBLSStep as MBLSStep
from perpend.solvers.steps import Outcome as Outcome
from perpend.solvers.steps import StepRule as StepRule
from perpend.solvers.steps import step_rule as step_rule
