"""The third calibration suite: laws of inliers, noise and outliers that the other two do not have.

D = 3 to 60, N = 5 D to 40 D inliers, 10 to 80 % outliers; every kind of inliers meets every kind of
noise and of outliers. A *right* estimate is as on the calibration page: the codimension of a
subspace that the generator put points on (the inliers', or the outliers' own), with labels that fit
these points, F1 at least 0.9. Where the noise is large, the true subspace itself may not reach that
F1 with any threshold: no estimate for such a problem can be right, and they are counted beside.
"""

from typing import Any

import numpy as np

from _suites.suite import Array, Problem, Row, Suite, best_f1, labels, log_uniform, rotation, unit
from perpend.experiments._trials import n_outliers
from perpend.metrics import outlier_f1
from studies._calibration_suite import FITS

INLIERS = ("Gauss", "stretched", "heavy", "clustered", "cube")
NOISE = ("none", "Gauss", "Student 3", "by row", "by column")
OUTLIERS = ("sphere", "anisotropic", "plane", "cluster", "heavy", "near")
SHORTEST = 0.3  # row of a cube, so that directions stay clear of the noise


def draw(seed: int, case: int = 0) -> Problem:
    """Draw one problem."""
    del case
    rng = np.random.default_rng([5, seed])
    inliers, law, outliers = (
        kinds[rng.integers(len(kinds))] for kinds in (INLIERS, NOISE, OUTLIERS)
    )
    D = int(rng.integers(3, 61))
    c = int(log_uniform(rng, 1, D)) if rng.random() < 0.6 else int(rng.integers(1, D))
    c, N, r = min(c, D - 1), int(log_uniform(rng, 5, 40) * D), float(rng.uniform(0.1, 0.8))
    M = n_outliers(N, r)
    noise = 0.0 if law == "none" else float(log_uniform(rng, 0.003, 0.1))
    Q = rotation(rng, D)
    A = _inliers(rng, inliers, N, D - c, noise) @ Q[:, c:].T
    A += noise / np.sqrt(D) * _noise(rng, law, N, D)
    B, own = _outliers(rng, outliers, M, Q[:, :c], noise)
    order = rng.permutation(N + M)
    return Problem(
        X=np.r_[A, B][order],
        codimension=c,
        normals=Q[:, :c].T,
        y=labels(N, M)[order],
        settings={"inliers": inliers, "noise": law, "outliers": outliers},
        # So few rows as the dimension lie on some subspace in any case.
        known={"own": own if own is not None and own < min(M, D) else None, "size": noise},
    )


def _inliers(rng: np.random.Generator, kind: str, N: int, d: int, noise: float) -> Array:
    """Draw rows in the d coordinates of the subspace, of about unit norm."""
    G = rng.standard_normal((N, d))
    match kind:
        case "stretched":
            return unit(G * np.geomspace(1, log_uniform(rng, 0.1, 1), d))
        case "heavy":  # Student: uniform directions, heavy-tailed norms
            degrees = rng.uniform(2, 3)
            return unit(G) / np.sqrt(rng.chisquare(degrees, (N, 1)) / degrees)
        case "clustered":
            n_clusters, spread = int(rng.integers(3, 7)), log_uniform(rng, 0.1, 0.5)
            centres = unit(rng.standard_normal((n_clusters, d)))
            G *= max(spread, 3 * noise) / np.sqrt(d)
            return centres[rng.integers(n_clusters, size=N)] + G
        case "cube":
            Z = rng.uniform(-1, 1, (N, d)) * np.sqrt(3 / d)
            norm = np.linalg.norm(Z, axis=1, keepdims=True)
            return Z * np.maximum(norm, SHORTEST) / norm
        case _:
            return unit(G)


def _noise(rng: np.random.Generator, law: str, N: int, D: int) -> Array:
    """Draw noise of deviation 1, or with deviations that differ by row or by column."""
    if law == "Student 3":
        return rng.standard_t(3, (N, D)) / np.sqrt(3)
    E = rng.standard_normal((N, D))
    if law == "by row":
        E *= np.exp(0.7 * rng.standard_normal((N, 1)))
    if law == "by column":
        E *= np.exp(0.5 * rng.standard_normal(D))
    return E


def _outliers(
    rng: np.random.Generator, kind: str, M: int, normals: Array, noise: float
) -> tuple[Array, int | None]:
    """Draw outliers, and the dimension of the subspace that they have themselves."""
    D = len(normals)
    U = unit(rng.standard_normal((M, D)))
    match kind:
        case "anisotropic":  # neighbouring axes within a factor of two
            axes = np.geomspace(1, max(0.1, 2.0 ** (1 - D)), D)
            B = rng.standard_normal((M, D)) * axes @ rotation(rng, D)
            return B / np.sqrt(np.mean(np.square(B).sum(1))), None
        case "plane":
            own = int(rng.integers(2, max(2, min(D // 4, 6)), endpoint=True))
            B = unit(rng.standard_normal((M, own))) @ rotation(rng, D)[:, :own].T
            return B + noise / np.sqrt(D) * rng.standard_normal((M, D)) * rng.integers(2), own
        case "cluster":
            centre, spread = unit(rng.standard_normal((1, D))), log_uniform(rng, 0.03, 0.3)
            return centre + spread / np.sqrt(D) * rng.standard_normal((M, D)), 1
        case "heavy":
            return U * np.abs(rng.standard_cauchy((M, 1))), None
        case "near":  # nearer to the subspace than chance, and not as near as the noise
            shrink = max(float(rng.uniform(0.2, 0.5)), 3 * noise)
            return U - (1 - shrink) * (U @ normals) @ normals.T, None
        case _:
            return U, None


def score(problem: Problem, model: Any) -> Row:
    """Score as `studies._calibration_suite.score` does."""
    y, own, D = problem.y, problem.known["own"], problem.X.shape[1]
    c, fits = int(model.codimension_), outlier_f1(y, model.labels_, positive=1) >= FITS
    inliers = c == problem.codimension and fits
    fits_outliers = outlier_f1(-y, model.labels_, positive=1) >= FITS
    outliers = not inliers and own is not None and c == D - own and fits_outliers
    return {
        "right": bool(inliers or outliers),
        "outliers_own": bool(outliers),
        "right_codimension": c == problem.codimension,
        "out_of_reach": not can_be_right(problem),
    }


def can_be_right(problem: Problem) -> bool:
    """Whether some threshold fits labels to the true subspace, or to the outliers' own."""
    X, y, own = unit(problem.X), problem.y, problem.known["own"]
    if best_f1(np.linalg.norm(X @ problem.normals.T, axis=1), y) >= FITS:
        return True
    if own is None:
        return False
    B = problem.X[y == -1]
    _, axes = np.linalg.eigh(B.T @ B)  # in increasing order of their variances
    normals = axes[:, : X.shape[1] - own]
    return best_f1(np.linalg.norm(X @ normals, axis=1), -y) >= FITS


def summary(rows: list[Row]) -> Row:
    """Count those sure and wrong for which no estimate could be right."""
    lost = [row for row in rows if row["out_of_reach"] and not row["right"]]
    return {"sure_out_of_reach": sum(row["sure"] for row in lost)}


THIRD = Suite(
    draws=1000,
    draw=draw,
    score=score,
    by=(("inliers",), ("noise",), ("outliers",)),
    summary=summary,
)
