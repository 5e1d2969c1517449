"""The heuristics that the paper dismisses as too costly: a sweep over the codimension.

RSGM and REAPER are fitted with every codimension from 1 to 30, the number of starts in the paper,
and a rule selects one: the knee of the objective, or the largest `score`. `DPCP()` gets the rows.
"""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Experiment, Results, Settings, Tables
from perpend.experiments._trials import RECOVERED, n_outliers, paper_data

SEED = 214_000  # of the first trial
OURS = "DPCP()"
KNEE, SCORE = "knee of the objective", "largest score"


def cases(settings: Settings) -> list[Case]:
    """Return one case for each data set: those of Figure 3 of the paper, at three codimensions."""
    sizes: Case = {"D": 200, "N": 1500, "most": 30}
    codimensions, ratios = [10, 13, 20], [0.6, 0.7]
    if settings.quick:
        sizes, codimensions, ratios = {"D": 20, "N": 100, "most": 6}, [2, 4], [0.6]
    return [
        {**sizes, "c": c, "r": r, "seed": SEED + trial}
        for trial in range(settings.seeds or 1) for r in ratios for c in codimensions
    ]  # fmt: skip


def knee(objective: Array) -> int:
    """Return the codimension at which the objective (k,) of codimensions 1 to k bends up most.

    Up to the true one only outliers add to it, as the root of the codimension; beyond, inliers do.

    >>> knee(np.array([1.0, 1.4, 1.7, 3.0, 4.0]))
    3
    """
    return 1 + int(np.argmax(np.diff(objective, n=2, prepend=0.0)))


def _timed(call: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    """Return what a call returns, and its CPU time."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = call(*args)
    return found, time.process_time() - start


def run(case: Case) -> Tables:
    """Fit `DPCP()`, and both methods with every codimension."""
    import perpend
    from perpend.metrics import subspace_error

    data = paper_data(
        case["D"], case["c"], case["N"], n_outliers(case["N"], case["r"]), case["seed"]
    )
    X = data.X
    perpend.DPCP(random_state=0).fit(X[: 4 * case["D"]])  # so that loading is nobody's time
    rows, steps = [], []

    def add(method: str, rule: str, model: Any, seconds: float) -> None:
        rows.append({**case, "method": method, "rule": rule, "found": len(model.normals_),
                     "error": subspace_error(model.normals_, data.normals),
                     "seconds": seconds})  # fmt: skip

    add(OURS, "", *_timed(perpend.DPCP(random_state=case["seed"]).fit, X))
    for name in ("RSGM", "REAPER"):
        models, scores, spent = [], [], {KNEE: 0.0, SCORE: 0.0}
        for k in range(1, case["most"] + 1):
            model = getattr(perpend, name)(k, random_state=case["seed"])
            fit, score = _timed(model.fit, X), _timed(model.score, X)
            models.append(model)
            scores.append(float(score[0]))
            spent = {KNEE: spent[KNEE] + fit[1], SCORE: spent[SCORE] + fit[1] + score[1]}
        sums = [float(np.linalg.norm(X @ m.normals_.T, axis=1).sum()) for m in models]
        for rule, k in ((KNEE, knee(np.array(sums))), (SCORE, 1 + int(np.argmax(scores)))):
            add(name, rule, models[k - 1], spent[rule])
        steps += [
            {**case, "method": name, "k": k, "objective": f, "score": s}
            for k, (f, s) in enumerate(zip(sums, scores, strict=True), 1)
        ]
    return {"selected": rows, "steps": steps}


def cost(case: Case) -> float:
    """Return the relative time: about the number of rows and of codimensions."""
    return float(case["N"] / (1 - case["r"]) * case["D"] * case["most"])


# -- looking at the results --------------------------------------------------------------------


def draw(results: Results) -> dict[str, Any]:
    """Draw objective and score over the codimension, for the first trial at the largest ratio."""
    from perpend.plots._style import COLORS, small_multiples

    steps = results.tables["steps"]
    seed, r = steps[0]["seed"], max(results.values("steps", "r"))
    panels = {
        f"{method}: {what}": (method, column)
        for method in results.values("steps", "method")
        for what, column in (("objective", "objective"), ("score", "score"))
    }
    options: Any = {"panel": (3.6, 3.0), "xlabel": "given codimension", "ylabel": ""}
    with small_multiples(panels, 2, **options) as (drawing, _, pairs):
        for ax, (method, column) in pairs:
            for i, c in enumerate(results.values("steps", "c")):
                where = {"method": method, "c": c, "r": r, "seed": seed}
                k, y = (results.column("steps", name, **where) for name in ("k", column))
                ax.plot(k, y, ".-", color=COLORS[i], label=f"c = {c}")
                ax.axvline(c, color=COLORS[i], linestyle=":", linewidth=1)
            ax.legend()
    return {"sweep": drawing}


def numbers(results: Results) -> dict[str, Any]:
    """Return how often each way finds the codimension and the subspace, and its CPU time."""
    lines = []
    for (method, rule), rows in results.groups("selected", "method", "rule").items():
        lines.append({
            "method": method, "rule": rule, "n": len(rows),
            "hits": sum(row["found"] == row["c"] for row in rows),
            "recovered": sum(row["error"] < RECOVERED for row in rows),
            "seconds": float(np.median([row["seconds"] for row in rows])),
            "found": {
                (c, r): [row["found"] for row in rows if (row["c"], row["r"]) == (c, r)]
                for r in results.values("selected", "r") for c in results.values("selected", "c")
            },
        })  # fmt: skip
    return {"lines": lines, "ours": lines[0], "others": lines[1:], "limit": RECOVERED}


EXPERIMENT = Experiment(
    name="sweep",
    title="A sweep over the codimension",
    about="RSGM and REAPER with every codimension and a selection rule, beside DPCP()",
    cases=cases,
    run=run,
    draw=draw,
    cost=cost,
)
