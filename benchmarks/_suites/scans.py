"""Planes in scans that people have made: roads (LiDAR) and tables (depth images).

Two KITTI frames with the road marked, as points [x y z] with an affine plane and as rows [x y z 1],
and two Kinect scenes with the table marked, as points. The files are those of the boards, in the
folder that ``PERPEND_DATA`` names. A seed permutes the rows.

The yardstick is the least-squares plane of the marked points: its AUC is what a plane can reach.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from _suites.suite import Array, Problem, Row, Suite, unit
from perpend.metrics import outlier_auc
from studies.boards._files import SOURCES, files, read_arrays
from studies.boards.planes import TRUTH

WRONG = 0.95  # AUC up to which a plane is not the one that is marked
POINTS, HOMOGENEOUS = "xyz", "xyz1"
KINDS = {"roads": "roads", "tabletops": "tables"}  # as they are stored
CASES = (
    *(("roads", number, form) for form in (POINTS, HOMOGENEOUS) for number in (0, 1)),
    *(("tabletops", number, POINTS) for number in (0, 1)),
)


class Scan(NamedTuple):
    """A file, and the least-squares plane of what is marked in it."""

    points: Array  # (n, 3)
    y: Array
    centre: Array
    normal: Array
    best_auc: float


@lru_cache(2)
def read(path: str, truth: str) -> Scan:
    """Read a scan and fit its plane."""
    points, marked = read_arrays(path, "points", truth)
    points, y = points.astype(float), np.where(marked == 1, 1, -1)
    centre = points[y == 1].mean(0)
    normal = np.linalg.svd(points[y == 1] - centre, full_matrices=False)[2][-1]
    distance = np.abs((points - centre) @ normal)
    return Scan(points, y, centre, normal, outlier_auc(y, -distance))


def draw(seed: int, case: int) -> Problem:
    """Permute the rows of a scan."""
    kind, number, form = CASES[case]
    scan = read(files(kind)[number]["path"], TRUTH[kind])
    order = np.random.default_rng([6 + (kind == "tabletops"), seed]).permutation(len(scan.y))
    X, normals = scan.points[order], scan.normal[None]
    if form == HOMOGENEOUS:  # n.T (x - m) = 0 is [n, -n.T m].T [x 1] = 0
        X = np.c_[X, np.ones(len(X))]
        normals = unit(np.r_[scan.normal, -scan.normal @ scan.centre][None])
    frame = Path(SOURCES[kind].files[number]).stem
    return Problem(
        X,
        codimension=1,
        affine=form == POINTS,
        normals=normals,
        y=scan.y[order],
        settings={"kind": KINDS[kind], "frame": frame, "form": form},
        known={"best_auc": scan.best_auc},
    )


def score(problem: Problem, model: Any) -> Row:
    """Rank the points by the distance that decides the labels."""
    auc = outlier_auc(problem.y, model.score_samples(problem.X))
    right = bool(model.codimension_ == 1 and auc > WRONG)
    return {"right": right, "auc": auc, "best_auc": problem.known["best_auc"]}


def summary(rows: list[Row]) -> Row:
    """Return the AUCs: mean, smallest, and the yardstick's."""
    auc = [row["auc"] for row in rows]
    return {
        "auc": round(float(np.mean(auc)), 6),
        "smallest_auc": round(min(auc), 6),
        "best_auc": round(float(np.mean([row["best_auc"] for row in rows])), 6),
    }


SCANS = Suite(
    draws=20,
    draw=draw,
    score=score,
    n_cases=len(CASES),
    by=(("kind", "frame", "form"),),
    summary=summary,
)
