"""What the experiment `implicit-bias` computes: descents in three dimensions, and the ablation."""

from collections.abc import Callable
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.datasets import SubspaceData, make_subspace
from perpend.experiments._experiment import Case, Tables
from perpend.experiments._trials import n_outliers
from perpend.geometry import orthonormal, random_directions

NORMAL = 1e-2  # sine of the angle to the complement up to which a direction counts as a normal
OFFSET = 1_000_000  # starts and data from equal seeds would be made of the same numbers
WITH_EXTRAS = 5  # trials with the slow extras that only explain the others
GIVEN = {2: 3, 1: 2}  # codimension in three dimensions -> what RSGM is given; the paper has 3 for 2
SHORT, PUBLISHED, RSGM = "DPCP-PSGM, short steps", "DPCP-PSGM", "RSGM"
FREE, LONG, ORTHOGONAL = "free", "free, long schedule", "orthogonal"


def complement(c: int) -> Array:
    """Return the normals (c, 3) of the pictures: the horizontal plane, or the vertical axis."""
    return np.eye(3)[:2] if c == 2 else np.eye(3)[2:]


def _data(case: Case, D: int, seed: int) -> SubspaceData:
    N, c = case["N"], case["c"]
    M = n_outliers(N, case["r"])
    return make_subspace(N, M, n_features=D, codimension=c, random_state=seed)


def sphere(case: Case) -> Tables:
    """Descend in three dimensions, in many trials, and keep the way of the first one."""
    limits, paths = [], []
    T = complement(case["c"])
    for trial in range(case["trials"]):
        for method, descend in _descents(case, trial).items():
            B0, B = descend(0), descend(200)
            goal = _unit(T.T @ (T @ B0))  # the limit of Lemma 4
            for j, b in enumerate(B.T):
                row = {"c": case["c"], "method": method, "trial": trial, "start": j}
                row |= {
                    "rank": _rank(B, NORMAL),
                    "off_complement": np.linalg.norm(b - T.T @ (T @ b)),
                    "off_subspace": np.linalg.norm(T @ b),
                    "start_off_subspace": np.linalg.norm(T @ B0[:, j]),
                    "degrees_to_projection": np.rad2deg(_angle(b, goal[:, j])),
                }
                limits.append(row)
            if trial == 0:
                for step in sorted({0, *np.geomspace(1, 200, 40).astype(int).tolist()}):
                    for j, (x, y, z) in enumerate(descend(step).T):
                        row = {"c": case["c"], "method": method, "start": j, "step": step}
                        paths.append(row | {"x": x, "y": y, "z": z})
    return {"limits": limits, "paths": paths}


def _descents(case: Case, trial: int) -> dict[str, Callable[[int], Array]]:
    """Return, by method, the function from a number of steps to the directions (3, k)."""
    from perpend.methods.rsgm import STEPS
    from perpend.rows import as_rows, row_span
    from perpend.solvers import AutoStep, MBLSStep, psgm, riemannian, spectral_starts

    c = case["c"]
    data = _data(case, 3, trial)
    parts = (data.normals, data.components) if c == 2 else (data.components, data.normals)
    rows = as_rows(data.X @ np.vstack(parts).T)  # turned so that the picture stands upright
    B0 = random_directions(np.random.default_rng(trial + OFFSET), 3, 3)
    V0 = spectral_starts(row_span(rows), GIVEN[c])

    def free(rule: Any) -> Callable[[int], Array]:
        return lambda n: psgm(rows, B0, rule=rule, max_iter=n, tol=1e-9).B if n else B0

    def orthogonal(n: int) -> Array:
        return riemannian(rows, V0, rule=STEPS["mbls"], max_iter=n, tol=1e-8).B if n else V0

    # The published rule leaps in its first steps; steps of 3 degrees at most show the way.
    return {SHORT: free(AutoStep(mu0=0.05)), PUBLISHED: free(MBLSStep()), RSGM: orthogonal}


def ablation(case: Case) -> Tables:
    """Fit one combination of start and constraint, and measure its directions and its estimate."""
    from perpend import metrics
    from perpend.rows import as_rows, row_span
    from perpend.solvers import spectral_starts
    from perpend.theory import average_height

    D, c, k, seed = (case[name] for name in ("D", "c", "k", "seed"))
    data = _data(case, D, seed)
    T = data.normals
    if case["start"] == "random":
        B0 = random_directions(np.random.default_rng(seed + OFFSET), D, k)
    else:
        B0 = spectral_starts(row_span(as_rows(data.X)), k)
    model = _model(case, B0).fit(data.X)

    B = model.directions_.T
    away = np.linalg.norm(B - T.T @ (T @ B), axis=0)
    there = away <= NORMAL
    angles = np.rad2deg(_angle(B, _unit(T.T @ (T @ B0))))[there]
    span = orthonormal(B, rtol=1e-6)
    row = {name: value for name, value in case.items() if name != "part"} | {
        "codimension": model.codimension_,
        "confidence": model.confidence_,
        "rank_1e6": _rank(B, 1e-6),
        "rank_1e2": _rank(B, 1e-2),
        "n_normals": np.sum(there),
        "largest_sine": np.max(away),
        "missed": np.linalg.norm(T.T - span @ (span.T @ T.T), 2),
        "subspace_error": metrics.subspace_error(model.normals_, T),
        "distance": metrics.subspace_distance(model.normals_, T),
        "degrees_to_projection": np.median(angles) if angles.size else None,
        # of the starts after the c-th: spectral ones begin with approximate normals
        "start_height": np.mean(np.abs(data.X @ B0[:, c:])) / average_height(D),
        "start_cosine": np.median(np.linalg.norm(T @ B0[:, c:], axis=0)),
        "lp_decrease": None,
        "n_iter": model.n_iter_,
        "converged": model.converged_,
    }
    last = case["max_iter"] == 1000
    if last and case["kind"] == FREE and seed < WITH_EXTRAS and not np.all(there):
        row["lp_decrease"] = _lp_decrease(data.X, B[:, np.argmin(there)])
    s = np.linalg.svd(B, compute_uv=False)
    values = [
        {name: case[name] for name in ("r", "start", "kind", "seed")}
        | {"index": j + 1, "value": value / s[0]}
        for j, value in enumerate(s)
        if last
    ]
    return {"ablation": [row], "singular_values": values}


def _model(case: Case, starts: Array) -> Any:
    from perpend import methods
    from perpend.solvers import GeometricStep

    init = starts.T if case["start"] == "random" else "spectral"
    if case["kind"] == ORTHOGONAL:
        return methods.RSGM(case["k"], init=init, max_iter=case["max_iter"])
    # The rule of the paper's Theorem 1: constant steps without a line search, long enough to get
    # out of any valley, then halved every ten.
    long = GeometricStep(mu0=0.25, K0=300, K_star=10, beta=0.5)
    return methods.DPCP(
        n_starts=case["k"],
        init=init,
        step=long if case["kind"] == LONG else "mbls",
        refine=False,
        max_iter=case["max_iter"],
        random_state=case["seed"] + OFFSET,
    )


def _lp_decrease(X: Array, b: Array) -> float:
    """Return by how much a linear programme lowers the objective at b, relatively; 0 at a minimum.

    min ||X v||_1 with b.v = 1 is convex, equals f(b) at v = b, and bounds f(v / ||v||) from above.
    Solved is its dual: max t with X.T y = t b and -1 <= y <= 1.
    """
    from scipy.optimize import linprog

    found = linprog(
        np.append(np.zeros(len(X)), -1.0),
        A_eq=np.column_stack([X.T, -b]),
        b_eq=np.zeros(len(b)),
        bounds=[(-1, 1)] * len(X) + [(0, None)],
        method="highs-ipm",
    )
    return 1 + float(found.fun) / float(np.sum(np.abs(X @ b)))


def _unit(B: Array) -> Array:
    return B / np.linalg.norm(B, axis=0)


def _angle(a: Array, b: Array) -> Array:
    """Return the angles between unit columns, exact also where they are small."""
    return 2 * np.arctan2(np.linalg.norm(a - b, axis=0), np.linalg.norm(a + b, axis=0))


def _rank(B: Array, tolerance: float) -> int:
    s = np.linalg.svd(B, compute_uv=False)
    return int(np.sum(s > tolerance * s[0]))
