"""Checks of `theory` that need no rows, or endlessly many: Lemmas 2 to 4, Theorem 5, starts."""

import math

import numpy as np

from perpend import theory
from perpend.experiments._experiment import Case, Row
from perpend.experiments._trials import starts_rng
from perpend.geometry import random_directions

N_DIRECTIONS = 8
N_HALVINGS = 45  # of the continuous method's steps: down to rounding
NUMERICAL_RANK = 1e-8  # relative; what is smaller counts as zero
EPS = (0.0, 1.0, 2.0)
C1, C2 = 1.0, 0.5  # as for Gaussian columns (Vershynin 2010, Corollary 5.35)
EPS7 = math.sqrt(math.log(4) / C2)  # in Theorem 7: what follows then has probability >= 1/2


def lemma2(case: Case) -> list[Row]:
    """Compare the mean of |z.b| over sampled rows with p c_D + (1 - p) c_d cos(phi).

    The mean over the outliers alone, over the inliers alone, and over all rows. Directions: one in
    the subspace, one in the complement, and random ones.
    """
    D, c, p, n = case["D"], case["c"], case["p"], case["n"]
    d = D - c
    rng = np.random.default_rng([case["seed"], D, c, round(100 * p)])
    # Axes suffice: the measures are uniform, so only the angle to the subspace matters.
    outlying = rng.random(n) < p
    z = random_directions(rng, D, n).T
    z[~outlying] = 0.0
    z[~outlying, :d] = random_directions(rng, d, int(np.sum(~outlying))).T
    B = np.hstack([np.eye(D)[:, [0, -1]], random_directions(rng, D, N_DIRECTIONS)])
    rows: list[Row] = []
    for b in B.T:
        cosine = float(np.linalg.norm(b[:d]))  # of phi, the angle to the subspace
        heights = np.abs(z @ b)
        outside, inside = theory.average_height(D), theory.average_height(d) * cosine
        parts = {
            "outliers": (heights[outlying], outside),
            "inliers": (heights[~outlying], inside),
            "all": (heights, p * outside + (1 - p) * inside),
        }
        for kind, (sample, predicted) in parts.items():
            error = float(np.std(sample, ddof=1)) / math.sqrt(len(sample))
            measured = float(np.mean(sample))
            rows.append(
                {
                    "rows": kind,
                    "cosine": cosine,
                    "measured": measured,
                    "predicted": predicted,
                    "standard_error": error,
                    # a direction in the complement has no height over any inlier: no error either
                    "z": (measured - predicted) / error if error > 1e-12 else None,
                }
            )
    return rows


def continuous(case: Case) -> list[Row]:
    """Run the continuous method with Theorem 1's steps; measure limits and their rank."""
    D, c, p = case["D"], case["c"], case["p"]
    Q = np.linalg.qr(np.random.default_rng([case["seed"], D, c]).standard_normal((D, D)))[0]
    normals = Q[:, :c]
    B0 = random_directions(starts_rng(case["seed"]), D, 2 * c)
    tangents = theory.start_tangents(B0, normals)
    conditions = theory.theorem1(theory.continuous_values(D, c, p), tangents)
    schedule = conditions.schedule()
    n_steps = schedule.K0 + N_HALVINGS * schedule.K_star
    way = theory.continuous_psgm(B0, normals, p, steps=schedule.steps(n_steps))
    bound = conditions.angle_bound(schedule, np.arange(n_steps + 1))
    limit = theory.projected_starts(B0, normals)
    rows = []
    for k in sorted({max(1, c - 1), c, 2 * c}):
        s = np.linalg.svd(way.B[:, :k], compute_uv=False)
        rows.append(
            {
                "k": k,
                "steps": n_steps,
                "holds": conditions.holds,
                "violations": np.sum(way.tangents[:, :k] > bound[:, :k] * (1 + 1e-9)),
                "largest_tangent": np.max(way.tangents[-1, :k]),
                "deviation": np.max(np.abs(way.B[:, :k] - limit[:, :k])),
                "rank": np.sum(s > NUMERICAL_RANK * s[0]),
                "expected_rank": min(k, c),
            }
        )
    return rows


def starts(case: Case) -> list[Row]:
    """Compare singular values of random starts with both lower bounds."""
    D, c, k = case["D"], case["c"], case["k"]
    rng = starts_rng(case["seed"])
    draws = [random_directions(rng, D, k) for _ in range(case["draws"])]
    whole = np.array([np.linalg.svd(B, compute_uv=False)[-1] for B in draws])
    # any c coordinates will do as the complement
    projected = np.array([np.linalg.svd(B[:c], compute_uv=False)[-1] for B in draws])
    rows = []
    for eps in EPS:
        bound = theory.start_singular_bound(k, D, C1=C1, eps=eps)
        failure = min(1.0, 2 * math.exp(-C2 * eps**2))
        bound_projected = theory.projected_singular_bound(k, c, D, failure=failure)
        rows.append(
            {
                "eps": eps,
                "promised": 1 - failure,
                "bound": bound,
                "above": np.mean(whole > bound),
                "median": np.median(whole),
                "bound_projected": bound_projected,
                "above_projected": np.mean(projected > bound_projected),
                "median_projected": np.median(projected),
            }
        )
    return rows
