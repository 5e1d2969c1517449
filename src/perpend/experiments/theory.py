"""The paper's statements, checked by numbers: how often conditions hold, and what happens if not.

Lemmas about means over spheres are checked by sampling (Lemma 2) and by running the continuous
method (Lemmas 3 and 4, Theorem 5). Everything about finitely many rows is checked on one grid of
problems, from easy to impossible: Theorem 1, Assumption 1, the identity for the limits, the bounds
on the outliers' errors, Lemma 6, Theorem 7, and the method itself.
"""

from perpend.experiments._experiment import Case, Experiment, Settings, Tables
from perpend.experiments._text import from_template
from perpend.experiments._theory_figures import draw
from perpend.experiments._theory_page import numbers

SHAPES = [(3, 1), (10, 1), (10, 5), (10, 8), (30, 5), (30, 25)]  # D, c
MOST_ROWS = 34_000


def cases(settings: Settings) -> list[Case]:
    """Return the cases of the four parts."""
    quick = settings.quick
    seeds = settings.seeds or (1 if quick else 3)
    shapes = [(3, 1), (10, 5), (10, 8)] if quick else SHAPES
    inliers = [30, 100, 1000] if quick else [30, 100, 300, 1000, 10_000]
    shares = [0.01, 0.5, 0.9] if quick else [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97]
    problems: list[Case] = [
        {"part": "problem", "D": D, "c": c, "N": N, "M": M, "r": r, "seed": seed}
        for seed in range(seeds)
        for D, c in shapes
        for N in inliers
        for r in shares
        if N + (M := max(1, round(r / (1 - r) * N))) <= MOST_ROWS
    ]
    spheres = [(3, 1), (10, 5), (30, 5)] if quick else [*SHAPES, (3, 2), (200, 10)]
    ratios = [0.1, 0.5, 0.9]
    lemma2: list[Case] = [
        {"part": "lemma2", "D": D, "c": c, "p": p, "n": 4000 if quick else 40_000, "seed": seed}
        for seed in range(seeds)
        for D, c in spheres
        for p in ratios
    ]
    continuous: list[Case] = [
        {"part": "continuous", "D": D, "c": c, "p": p, "seed": seed}
        for seed in range(seeds)
        for D, c in spheres
        for p in ratios
    ]
    sizes = [(30, 5, 10), (200, 5, 10), (200, 10, 10), (200, 10, 30), (200, 20, 30)]
    starts: list[Case] = [
        {"part": "starts", "D": D, "c": c, "k": k, "draws": 20 if quick else 100, "seed": seed}
        for seed in range(seeds)
        for D, c, k in sizes
    ]
    return problems + lemma2 + continuous + starts


def run(case: Case) -> Tables:
    """Compute a case of any part."""
    from perpend.experiments import _theory_limits, _theory_problem

    parts = {
        "problem": _theory_problem.problem,
        "lemma2": _theory_limits.lemma2,
        "continuous": _theory_limits.continuous,
        "starts": _theory_limits.starts,
    }
    rows = parts[case["part"]](case)
    given = {name: value for name, value in case.items() if name != "part"}
    return {case["part"]: [{**given, **row} for row in rows]}


def cost(case: Case) -> float:
    """Return the relative time, about the seconds."""
    if case["part"] == "problem":
        return float(0.2 + 5e-6 * (case["N"] + case["M"]) * case["D"])
    return 0.1


EXPERIMENT = Experiment(
    name="theory",
    title="The theory, checked by numbers",
    about="how often the conditions of lemmas and theorems hold, and what if not",
    cases=cases,
    run=run,
    draw=draw,
    describe=from_template(__file__, numbers),
    cost=cost,
)
