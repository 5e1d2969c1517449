"""What a suite is: problems that follow from a seed, the call that fits them, and a score."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array

SURE = 0.95
NEAR = 0.5  # sine of the largest angle below which a subspace is the one that was put there

Row = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """Rows, and what is known of them."""

    X: Array  # (n, D)
    codimension: int  # 0 where there is no subspace
    affine: bool = False
    normals: Array | None = None  # (c, D), orthonormal rows
    y: Array | None = None  # +1 inlier, -1 outlier
    settings: Row = field(default_factory=dict)  # what estimates are counted by
    known: Row = field(default_factory=dict)  # what else is known, mostly for `score`


class Suite(NamedTuple):
    """A kind of problems; `draw` takes a seed and a case, `score` a problem and a fitted model."""

    draws: int  # of each case, at full size
    draw: Callable[[int, int], Problem]
    score: Callable[[Problem, Any], Row]
    n_cases: int = 1
    by: tuple[tuple[str, ...], ...] = ()  # settings to count by, alone or together
    summary: Callable[[list[Row]], Row] = lambda _: {}  # of some rows, beside the counts


def fitted(problem: Problem, seed: int) -> tuple[Any, float]:
    """Fit by the call that the documentation recommends; return the model and its CPU seconds."""
    from perpend import DPCP  # here, so that the study of the constants can change them before

    model = DPCP(affine=problem.affine, random_state=seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unsure estimate is counted, not announced
        model.fit(problem.X)
    return model, time.process_time() - start


def scored(suite: Suite, seed: int, case: int = 0) -> Row:
    """Draw a problem, fit it, and say how the estimate compares with the truth.

    Truth values of the row are counted; `sure` may be scored, too.
    """
    problem = suite.draw(seed, case)
    try:
        model, seconds = fitted(problem, seed)
    except Exception as error:
        error.add_note(f"while fitting seed {seed}, case {case}: {problem.settings}")
        raise
    sure = bool(model.confidence_ >= SURE)
    found = {"right": False, "sure": sure, **suite.score(problem, model)}
    return {"settings": problem.settings, "seconds": seconds, **found}


def same_subspace(problem: Problem, model: Any) -> bool:
    """Whether the codimension is right and the largest angle small."""
    A, B = np.asarray(model.normals_), problem.normals
    if B is None or A.shape != B.shape:
        return False
    return bool(np.linalg.norm(A - (A @ B.T) @ B, 2) < NEAR)  # the sine of the largest angle


def best_f1(distance: Array, y: Array) -> float:
    """Return the largest F1 of the inliers that a threshold on these distances can reach.

    >>> best_f1(np.array([0.1, 0.2, 0.3, 0.4]), np.array([1, 1, -1, 1]))
    0.8571428571428571
    """
    hits = np.cumsum(y[np.argsort(distance)] == 1)  # among the k nearest
    return float(np.max(2 * hits / (np.arange(1, len(y) + 1) + hits[-1])))


# -- drawing -----------------------------------------------------------------------------------


def rotation(rng: np.random.Generator, D: int) -> Array:
    """Draw an orthogonal matrix."""
    return np.linalg.qr(rng.standard_normal((D, D)))[0]


def log_uniform(rng: np.random.Generator, low: float, high: float, size: Any = None) -> Any:
    """Draw numbers whose logarithms are uniform."""
    return np.exp(rng.uniform(np.log(low), np.log(high), size))


def unit(X: Array) -> Array:
    """Return the rows with norm 1; a row of zeros stays."""
    norm = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norm > 0, norm, 1)


def labels(n_inliers: int, n_outliers: int) -> Array:
    """Return the labels of inliers, then outliers."""
    return np.r_[np.ones(n_inliers, int), -np.ones(n_outliers, int)]
