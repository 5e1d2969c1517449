"""The problems of the calibration, what a right estimate is, and how one is scored.

A suite is a fixed list of problems. Kinds of outliers, noise and stretch have exact shares; D, c, N
and the share of outliers are drawn uniformly. Everything follows from the suite's seed and the
number of the problem alone, so any part of a suite can be made without the rest.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.experiments._trials import n_outliers

if TYPE_CHECKING:
    from perpend.datasets import SubspaceData

SIZE = 600  # problems in a suite
FITS = 0.9  # F1 from which labels fit the rows that were put on a subspace
OWN_DIMENSION = {"cluster": 1, "plane": 2}  # of outliers that lie on a subspace themselves


class Suite(NamedTuple):
    """How the problems of a suite are drawn: how many of each, and the seed."""

    seed: int
    kinds: tuple[str, ...]  # one after the other, again and again
    noise: dict[float, int]  # problems with each, SIZE in all
    stretch: dict[float, int]


TUNING, HELD_OUT = "first", "second"
SUITES = {
    TUNING: Suite(
        seed=4001,
        kinds=("sphere", "heavy", "cluster", "plane"),
        noise={0.0: 150, 0.02: 150, 0.1: 150, 0.4: 150},
        stretch={1.0: 200, 0.3: 200, 0.1: 200},
    ),
    # Other shares, all of them towards what is harder: more planes, more noise, more stretch.
    HELD_OUT: Suite(
        seed=9109,
        kinds=("plane", "sphere", "cluster", "plane", "heavy", "sphere", "plane", "cluster"),
        noise={0.0: 100, 0.02: 150, 0.1: 200, 0.4: 150},
        stretch={1.0: 150, 0.3: 200, 0.1: 250},
    ),
}
"""The suite that may be seen while the method is changed, and the one that may not."""


@dataclass(frozen=True)
class Problem:
    """One problem, as far as it can be said in numbers; `draw` makes its rows."""

    suite: str
    index: int
    kind: str  # of the outliers
    D: int
    c: int
    N: int  # inliers
    M: int  # outliers
    r: float  # M / (N + M) before it was rounded to whole rows
    noise: float
    stretch: float


def problem(suite: str, index: int) -> Problem:
    """Return one problem of a suite; from SIZE on the shares repeat, with other draws."""
    chosen = SUITES[suite]
    noise, stretch = _decks(suite)
    rng = np.random.default_rng([chosen.seed, index])
    D = int(rng.integers(3, 60, endpoint=True))
    c = int(rng.integers(1, D // 2, endpoint=True))
    N = int(rng.integers(2 * D, 20 * D, endpoint=True))
    r = float(rng.uniform(0, 0.9))
    kind = chosen.kinds[index % len(chosen.kinds)]
    place = index % SIZE
    return Problem(suite, index, kind, D, c, N, n_outliers(N, r), r, noise[place], stretch[place])


@cache
def _decks(suite: str) -> tuple[list[float], list[float]]:
    """Return noise and stretch of every problem: the exact shares, shuffled."""
    chosen = SUITES[suite]
    rng = np.random.default_rng(chosen.seed)
    noise, stretch = (
        rng.permutation([value for value, n in shares.items() for _ in range(n)]).tolist()
        for shares in (chosen.noise, chosen.stretch)
    )
    return noise, stretch


def draw(problem: Problem) -> "SubspaceData":
    """Return the rows of a problem."""
    from perpend.datasets import make_subspace

    return make_subspace(
        problem.N,
        problem.M,
        n_features=problem.D,
        codimension=problem.c,
        noise=problem.noise,
        stretch=problem.stretch,
        outliers=problem.kind,
        random_state=np.random.default_rng([SUITES[problem.suite].seed, problem.index, 1]),
    )


def starts(problem: Problem) -> np.random.Generator:
    """Return a generator for the starts that has nothing in common with that of the rows."""
    return np.random.default_rng([1_000_003, SUITES[problem.suite].seed, problem.index])


def own_codimension(problem: Problem) -> int | None:
    """Return the codimension of the subspace that the outliers have themselves.

    None where they have none, also where they are no more than its dimension: so few rows lie on
    some subspace in any case.
    """
    own = OWN_DIMENSION.get(problem.kind)
    return problem.D - own if own is not None and own < problem.M else None


def own_normals(problem: Problem, outliers: Array) -> Array | None:
    """Return the normals of that subspace as rows, None where there is none."""
    codimension = own_codimension(problem)
    if codimension is None:
        return None
    _, axes = np.linalg.eigh(outliers.T @ outliers)  # in increasing order of their variances
    normals: Array = axes[:, :codimension].T
    return normals


class Verdict(NamedTuple):
    """How an estimate compares with the subspaces that were put there."""

    right: bool
    subspace: str  # whose: that of the "inliers" or of the "outliers", "" for neither
    f1: float  # of the labels, with the inliers as what was to be found
    f1_outliers: float  # with the outliers as what was to be found


def score(problem: Problem, y: Array, codimension: int, labels: Array) -> Verdict:
    """Score an estimate: the codimension of a subspace with points on it, and labels that fit it.

    The subspaces are the inliers' and, where the outliers have one, their own: the plane, or the
    line through the tight cluster, if they are more than its dimension. The sum of both was not put
    there, and codimension 0 is never right.
    """
    from perpend.metrics import outlier_f1

    f1, f1_outliers = outlier_f1(y, labels, positive=1), outlier_f1(-y, labels, positive=1)
    subspace = ""
    if codimension == problem.c and f1 >= FITS:
        subspace = "inliers"
    elif codimension == own_codimension(problem) and f1_outliers >= FITS:
        subspace = "outliers"
    return Verdict(subspace != "", subspace, f1, f1_outliers)
