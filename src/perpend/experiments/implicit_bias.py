"""The implicit bias of DPCP-PSGM: the paper's first figure, and the ablation that it argues for.

In three dimensions: random starts without constraints end at normals, near their own projections,
so that their rank is the codimension; an orthogonal frame of too many columns cannot. In high
dimension: starts (random, spectral) times constraint (free, orthogonal), each with its rank.
"""

from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments import _implicit_bias as bias
from perpend.experiments._experiment import Case, Experiment, Results, Settings, Tables
from perpend.experiments._trials import percent, shares

FULL = {"D": 200, "c": 10, "k": 30, "N": 1500}
QUICK = {"D": 40, "c": 4, "k": 12, "N": 300}
VIEW = (25.0, 35.0)  # height and turn of the eye, in degrees
NEARER_SUBSPACE = 0.7071  # sine of 45 degrees: beyond it, limits are nearer to it than to normals


def cases(settings: Settings) -> list[Case]:
    """Return both pictures, and all combinations of the ablation."""
    size, seeds, trials = (QUICK, 2, 10) if settings.quick else (FULL, 10, 100)
    found: list[Case] = [
        {"part": "sphere", "c": c, "N": 500, "r": 0.6, "trials": trials} for c in bias.GIVEN
    ]
    for seed in range(settings.seeds or seeds):
        runs = [(kind, n) for kind in (bias.FREE, bias.ORTHOGONAL) for n in (200, 1000)]
        runs += [(bias.LONG, 1000)] if seed < bias.WITH_EXTRAS else []
        found += [
            {"part": "ablation", **size, "r": r, "start": start, "kind": kind}
            | {"max_iter": max_iter, "seed": seed}
            for r in (0.6, 0.7)
            for start in ("random", "spectral")
            for kind, max_iter in runs
        ]
    return found


def run(case: Case) -> Tables:
    """Compute one of them."""
    return bias.sphere(case) if case["part"] == "sphere" else bias.ablation(case)


def cost(case: Case) -> float:
    """Return the relative time: the size of the products times their number."""
    if case["part"] == "sphere":
        return 0.1 * float(case["trials"])
    steps = {bias.FREE: 400, bias.LONG: 800, bias.ORTHOGONAL: 1000}[case["kind"]]
    size = float(case["N"] / (1 - case["r"]) * case["D"] * case["k"])
    return 2e-10 * size * min(steps, int(case["max_iter"])) + 0.1


# -- results ---------------------------------------------------------------------------------------


def summary(results: Results) -> list[dict[str, str]]:
    """Return how often each combination of the ablation has the right codimension."""
    by = ("kind", "start")
    return shares(results, "ablation", by, "r", right=lambda row: row["codimension"] == row["c"])


def draw(results: Results) -> dict[str, Any]:
    """Draw the spheres, and the singular values of the ablation."""
    from perpend import plots

    spheres = plots.sphere(
        {
            _title(results, c, method): plots.OnSphere(**_scene(results, c, method))
            for c in bias.GIVEN
            for method in (bias.SHORT, bias.RSGM)
        },
        subspace="subspace of the inliers",
        complement="its complement: all normals",
        limits="limits",
        strays="limits inside the subspace",
        targets="projections of the starts",
        view=VIEW,
        columns=2,
    )
    ways = [(kind, start) for kind in (bias.FREE, bias.LONG) for start in ("random", "spectral")]
    c = results.rows("ablation")[0]["c"]
    lines: dict[str, dict[str, tuple[Array, ...]]] = {
        f"{percent(r)} outliers, c = {c}": {
            f"{kind}, {start or 'either'} start": _median_spectrum(results, r, kind, start)
            for kind, start in (*ways, (bias.ORTHOGONAL, ""))
        }
        for r in results.values("singular_values", "r")
    }
    spectra = plots.curves(
        lines, xlabel="index", ylabel="singular value / largest", log_y=True, panel=(4.6, 3.8)
    )
    return {"spheres": spheres, "ablation": spectra}


def _median_spectrum(results: Results, r: float, kind: str, start: str) -> tuple[Array, Array]:
    where = {"r": r, "kind": kind} | ({"start": start} if start else {})
    groups = results.groups("singular_values", "index", **where)
    medians = [np.median([row["value"] for row in rows]) for rows in groups.values()]
    return np.array([j for (j,) in groups]), np.array(medians)


def _title(results: Results, c: int, method: str) -> str:
    ends = results.rows("limits", c=c, method=method, trial=0)
    name = f"RSGM, given {bias.GIVEN[c]}" if method == bias.RSGM else "DPCP-PSGM, 3 starts"
    n_inside = sum(row["off_complement"] > NEARER_SUBSPACE for row in ends)
    n_normals = sum(row["off_complement"] <= bias.NORMAL for row in ends)
    verdict = "all limits are normals" if n_normals == len(ends) else f"{n_normals} normals"
    if n_inside:
        verdict = f"{n_inside} limit{'s' * (n_inside > 1)} inside the subspace"
    return f"codimension {c}: {name}\nrank {ends[0]['rank']}, {verdict}"


def _scene(results: Results, c: int, method: str) -> dict[str, Any]:
    """Put a trial on a sphere; of b and -b, the same normal, the one that ends on the near side."""
    T = bias.complement(c)
    height, turn = np.deg2rad(VIEW)
    eye = [np.cos(height) * np.cos(turn), np.cos(height) * np.sin(turn), np.sin(height)]
    paths = []
    for j in range(len(results.rows("limits", c=c, method=method, trial=0))):
        where = {"c": c, "method": method, "start": j}
        path = np.stack([results.column("paths", axis, **where) for axis in "xyz"], axis=1)
        paths.append(path if path[-1] @ eye >= 0 else -path)
    starts, ends = np.stack([path[0] for path in paths]), np.stack([path[-1] for path in paths])
    inside = np.linalg.norm(ends - ends @ T.T @ T, axis=1) > NEARER_SUBSPACE
    return {
        "subspace": np.eye(3)[~np.any(T, axis=0)],
        "complement": T,
        "starts": starts,
        "limits": ends[~inside],
        "strays": ends[inside],
        "targets": None if method == bias.RSGM else starts @ T.T @ T,
        "paths": paths,
    }


EXPERIMENT = Experiment(
    name="implicit-bias",
    title="Implicit bias: the rank is the codimension",
    about="the paper's first figure, and {random, spectral start} x {free, orthogonal}",
    cases=cases,
    run=run,
    draw=draw,
    summary=summary,
    cost=cost,
)
