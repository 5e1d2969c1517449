"""Fits that are clear, in the settings of benchmarks/fits.py and benchmarks/products.py.

They are here for their time alone, against another version.
"""

from typing import Any, NamedTuple

import numpy as np

from _suites.suite import Problem, Row, Suite, same_subspace
from perpend.datasets import make_subspace


class Setting(NamedTuple):
    """Rows of 200 features; codimension 10, or 10 to 20 with the seed."""

    n_inliers: int
    n_outliers: int
    more: int  # codimensions above 10 that occur


SETTINGS = Setting(30_000, 20_000, 0), Setting(1500, 3500, 0), Setting(1500, 2250, 10)
D = 200


def draw(seed: int, case: int) -> Problem:
    """Draw one problem without noise."""
    n_inliers, n_outliers, more = SETTINGS[case]
    c = 10 + seed % (more + 1)
    rng = np.random.default_rng([8, seed])  # not the numbers that draw the starts
    data = make_subspace(n_inliers, n_outliers, n_features=D, codimension=c, random_state=rng)
    r = n_outliers / (n_inliers + n_outliers)
    settings = {"data": f"{len(data.X):,} × {D}, {100 * r:.0f} % outliers"}
    return Problem(data.X, c, normals=data.normals, y=data.y, settings=settings)


def score(problem: Problem, model: Any) -> Row:
    """Require the subspace."""
    return {"right": same_subspace(problem, model)}


CLEAR = Suite(draws=5, draw=draw, score=score, n_cases=len(SETTINGS), by=(("data",),))
