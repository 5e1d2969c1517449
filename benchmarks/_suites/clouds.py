"""Smooth clouds: without a subspace, and with one that is nothing but a gap between the axes.

Elliptical Gaussian and Student clouds (3 to 10 degrees of freedom) and boxes, turned; half of them
lie away from the origin, and there an affine subspace is required. There are no outliers.

*cloud*: D = 2 to 30, n = 50 to 20,000; neighbouring axes differ by a factor of at most 2.5, so no
axis is noise beside the next, and a sure subspace is wrong. *gap*: neighbouring axes differ by at
most 1.5, and once by 10: there the subspace ends.
"""

from typing import Any

import numpy as np

from _suites.suite import (
    SURE,
    Array,
    Problem,
    Row,
    Suite,
    log_uniform,
    rotation,
    same_subspace,
    unit,
)

LAWS = ("Gauss", "Student", "box")
STEP, SMALL_STEP, BIG_STEP = 2.5, 1.5, 10.0  # between neighbouring axes
MOST_ROWS = 20_000
FEATURES = {5: "2 to 5", 15: "6 to 15", 30: "16 to 30"}
ROWS = {500: "50 to 500", 3000: "500 to 3000", MOST_ROWS: "3000 to 20,000"}


def draw(seed: int, case: int = 0) -> Problem:
    """Draw a cloud that has no subspace."""
    del case
    rng = np.random.default_rng([2, seed])
    D, n = int(rng.integers(2, 31)), int(log_uniform(rng, 50, MOST_ROWS))
    return _cloud(rng, n, log_uniform(rng, 1, STEP, D - 1), codimension=0)


def draw_gap(seed: int, case: int = 0) -> Problem:
    """Draw a cloud whose last c axes are ten times as short."""
    del case
    rng = np.random.default_rng([3, seed])
    D = int(rng.integers(2, 31))
    n, c = int(log_uniform(rng, max(50, 10 * D), MOST_ROWS)), int(rng.integers(1, D))
    steps = log_uniform(rng, 1, SMALL_STEP, D - 1)
    steps[D - c - 1] = BIG_STEP
    return _cloud(rng, n, steps, codimension=c)


def _cloud(rng: np.random.Generator, n: int, steps: Array, codimension: int) -> Problem:
    """Draw n rows; `steps` are the ratios of neighbouring axes, the longest of which is 1."""
    axes = np.r_[1, np.cumprod(1 / steps)]
    D = len(axes)
    law = LAWS[rng.integers(len(LAWS))]
    degrees = float(rng.uniform(3, 10))
    Z = rng.uniform(-1, 1, (n, D)) if law == "box" else rng.standard_normal((n, D))
    if law == "Student":
        Z /= np.sqrt(rng.chisquare(degrees, (n, 1)) / degrees)
    affine, Q = bool(rng.integers(2)), rotation(rng, D)
    far = np.zeros(D)
    if affine:
        far = unit(rng.standard_normal((1, D)))[0] * log_uniform(rng, 0.1, 10)
    return Problem(
        X=(Z * axes) @ Q.T + far,
        codimension=codimension,
        affine=affine,
        normals=Q[:, D - codimension :].T,
        settings={
            "law": law,
            "features": next(name for end, name in FEATURES.items() if end >= D),
            "rows": next(name for end, name in ROWS.items() if n <= end),
            "affine": affine,
        },
        known={"axes": axes, "far": far},
    )


def score(problem: Problem, model: Any) -> Row:
    """Being sure of a subspace is wrong; all columns, or none, are no subspace."""
    sure = bool(model.confidence_ >= SURE and 0 < model.codimension_ < problem.X.shape[1])
    return {"right": not sure, "sure": sure}


def score_gap(problem: Problem, model: Any) -> Row:
    """Require the subspace of the long axes."""
    return {"right": same_subspace(problem, model)}


BY = ("law",), ("features",), ("rows",), ("affine",)
CLOUD = Suite(draws=1000, draw=draw, score=score, by=BY)
GAP = Suite(draws=200, draw=draw_gap, score=score_gap, by=BY)
