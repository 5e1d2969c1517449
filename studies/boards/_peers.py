"""Methods of other packages. None of them is needed: what is missing has a note on the page."""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Row
from studies.boards._board import NOT_INSTALLED, timed


@cache
def package(name: str) -> Any:
    """Return a package, or None if it is not there or cannot be loaded."""
    try:
        return import_module(name)
    except (ImportError, OSError):
        return None


def row_of(
    method: str,
    call: Callable[[], Any] | None,
    values: Callable[[Any], Row],
    *,
    may_fail: bool = True,
) -> Row:
    """Return the row of a method: what it measures, the time, or why there is nothing.

    An error of a peer is a note; one of ours (`may_fail=False`) fails the case.
    """
    if call is None:
        return {"method": method, "note": NOT_INSTALLED}
    try:
        found, seconds = timed(call)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        if not may_fail:
            raise
        return {"method": method, "note": f"failed: {type(error).__name__}"}
    return {"method": method, **values(found), "seconds": seconds}


# -- outliers in tables: functions that score rows, higher for outliers -------------------------


def detectors(X: Array, seed: int) -> dict[str, Callable[[], Array] | None]:
    """Return the detectors with their defaults; those without chance only for the first seed."""
    from sklearn.covariance import MinCovDet
    from sklearn.ensemble import IsolationForest
    from sklearn.neighbors import LocalOutlierFactor

    found: dict[str, Callable[[], Array] | None] = {
        "IForest": lambda: -IsolationForest(random_state=seed).fit(X).score_samples(X),
        "MCD": lambda: MinCovDet(random_state=seed).fit(X).dist_,
    }
    if seed == 0:
        found["LOF"] = lambda: -LocalOutlierFactor().fit(X).negative_outlier_factor_
        found |= {name: _pyod(name, X) for name in ("ECOD", "COPOD", "KNN", "PCA")}
    return found


def _pyod(name: str, X: Array) -> Callable[[], Array] | None:
    if package("pyod") is None:
        return None
    detector = getattr(package(f"pyod.models.{name.lower()}"), name)
    return lambda: np.asarray(detector().fit(X).decision_scores_)


# -- planes: functions that return [a, b, c, d] --------------------------------------------------

OPEN3D, PYRANSAC, SKLEARN = "Open3D segment_plane", "pyransac3d", "scikit-learn RANSACRegressor"


def planes(
    points: Array, threshold: float, draws: int, seed: int
) -> dict[str, Callable[[], Array] | None]:
    """Return RANSAC as three packages have it."""
    return {
        OPEN3D: open3d_plane(points, threshold, draws, seed),
        PYRANSAC: _pyransac3d(points, threshold, draws, seed),
        SKLEARN: lambda: _regressed(points, threshold, draws, seed),
    }


def open3d_plane(
    points: Array, threshold: float, draws: int, seed: int
) -> Callable[[], Array] | None:
    """Return Open3D's search; the points are handed over before, and take no time of it."""
    o3d = package("open3d")
    if o3d is None:
        return None
    o3d.utility.random.seed(seed)
    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points))
    return lambda: np.asarray(cloud.segment_plane(threshold, 3, draws)[0])


def _pyransac3d(
    points: Array, threshold: float, draws: int, seed: int
) -> Callable[[], Array] | None:
    if package("pyransac3d") is None:
        return None
    import random

    random.seed(seed)
    plane = package("pyransac3d").Plane()
    return lambda: np.asarray(plane.fit(points, thresh=threshold, maxIteration=draws)[0])


def _regressed(points: Array, threshold: float, draws: int, seed: int) -> Array:
    """Return the plane of z on x and y; errors are counted along z."""
    from sklearn.linear_model import RANSACRegressor

    ransac = RANSACRegressor(residual_threshold=threshold, max_trials=draws, random_state=seed)
    line = ransac.fit(points[:, :2], points[:, 2]).estimator_
    return np.array([*line.coef_, -1.0, line.intercept_])


def open3d_planes(
    points: Array, threshold: float, share: float, draws: int, seed: int
) -> Callable[[], Array] | None:
    """Return a search for one plane after another: labels of the points, -1 for none.

    It ends with a plane of fewer points than the share of all.
    """
    if package("open3d") is None:
        return None

    def search() -> Array:
        labels, k = np.full(len(points), -1), 0
        while (left := np.flatnonzero(labels < 0)).size >= share * len(points):
            find = open3d_plane(points[left], threshold, draws, seed + k)
            if find is None:
                break
            near = left[distances(points[left], find()) < threshold]
            if len(near) < share * len(points):
                break
            labels[near], k = k, k + 1
        return labels

    return search


def distances(points: Array, plane: Array) -> Array:
    """Return the distances of points from a plane [a, b, c, d]."""
    return np.abs(points @ plane[:3] + plane[3]) / np.linalg.norm(plane[:3])


# -- two views: functions that return the matrix and the mask ------------------------------------

Estimate = tuple[Array, Array]


def two_views(
    first: Array, second: Array, pixels: float, seed: int, *, homography: bool
) -> dict[str, Callable[[], Estimate] | None]:
    """Return the estimators of OpenCV and PoseLib."""
    cv2, poselib = package("cv2"), package("poselib")
    found: dict[str, Callable[[], Estimate] | None] = dict.fromkeys(
        ("OpenCV USAC_MAGSAC", "OpenCV RANSAC", "PoseLib")
    )
    if cv2 is not None:
        cv2.setRNGSeed(seed)
        cv2.setNumThreads(1)
        find = cv2.findHomography if homography else cv2.findFundamentalMat
        ransac = cv2.RANSAC if homography else cv2.FM_RANSAC
        for name, method in (("USAC_MAGSAC", cv2.USAC_MAGSAC), ("RANSAC", ransac)):
            call = partial(find, first, second, method, pixels)
            found[f"OpenCV {name}"] = partial(_opencv, call, len(first))
    if poselib is not None:
        estimate = poselib.estimate_homography if homography else poselib.estimate_fundamental
        name = "max_reproj_error" if homography else "max_epipolar_error"
        found["PoseLib"] = lambda: _poselib(estimate(first, second, {name: pixels, "seed": seed}))
    return found


def _opencv(call: Callable[[], tuple[Any, Any]], n: int) -> Estimate:
    matrix, mask = call()
    if matrix is None or mask is None:  # it gave up
        return np.full((3, 3), np.nan), np.zeros(n, dtype=bool)
    return np.asarray(matrix)[:3], np.asarray(mask).ravel() > 0


def _poselib(found: tuple[Any, dict[str, Any]]) -> Estimate:
    return np.asarray(found[0]), np.asarray(found[1]["inliers"], dtype=bool)
