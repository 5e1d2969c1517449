"""Inliers whose axes inside the subspace fall towards the noise: six settings.

`make_subspace` with outliers on the sphere. Where the stretch is below the noise, the weakest
directions of the subspace are as thin as the noise itself.
"""

from typing import Any, NamedTuple

import numpy as np

from _suites.suite import Problem, Row, Suite, best_f1, same_subspace, unit
from perpend.datasets import make_subspace
from perpend.experiments._trials import n_outliers
from perpend.metrics import outlier_f1
from studies._calibration_suite import FITS


class Setting(NamedTuple):
    """One line of the table."""

    D: int
    c: int
    n_inliers: int
    r: float  # share of outliers
    stretch: float
    noise: float


SETTINGS = (
    Setting(30, 5, 500, 0.5, 0.1, 0.05),
    Setting(30, 5, 500, 0.5, 0.03, 0.01),
    Setting(30, 5, 500, 0.5, 0.03, 0.05),
    Setting(30, 5, 500, 0.5, 0.01, 0.01),
    Setting(20, 2, 500, 0.5, 0.1, 0.05),
    Setting(10, 1, 300, 0.7, 1.0, 0.05),
)


def draw(seed: int, case: int) -> Problem:
    """Draw a problem of one setting."""
    setting = SETTINGS[case]
    data = make_subspace(
        setting.n_inliers,
        n_outliers(setting.n_inliers, setting.r),
        n_features=setting.D,
        codimension=setting.c,
        noise=setting.noise,
        stretch=setting.stretch,
        random_state=np.random.default_rng([4, seed, case]),
    )
    return Problem(data.X, setting.c, normals=data.normals, y=data.y, settings=setting._asdict())


def score(problem: Problem, model: Any) -> Row:
    """Require the subspace; labels are counted beside it, with what the true subspace allows."""
    distance = np.linalg.norm(unit(problem.X) @ problem.normals.T, axis=1)
    return {
        "right": same_subspace(problem, model),
        "labels_fit": outlier_f1(problem.y, model.labels_, positive=1) >= FITS,
        "labels_can_fit": best_f1(distance, problem.y) >= FITS,
    }


STRETCHED = Suite(draws=50, draw=draw, score=score, n_cases=len(SETTINGS), by=(Setting._fields,))
