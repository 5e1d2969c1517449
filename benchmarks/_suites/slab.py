"""A plane with noise inside a uniform slab: both are there, and the plane is what is sought.

4000 rows, 15 to 60 % of them near a subspace (D = 3, c = 1 or D = 8, c = 3). Across it they have
Gaussian, Laplace or Student-3 noise; the others are uniform in a slab 5, 10 or 30 times as thick,
around the same subspace. Along it all are uniform, over ten times the slab's half-width. The cloud
is turned, and moved away from the origin.

What "5 times as thick" means is drawn as well: the slab's half-width, or its standard deviation, is
5 times the noise; and the noise is the standard deviation of the law, or its scale.
"""

from typing import Any

import numpy as np

from _suites.suite import Problem, Row, Suite, labels, log_uniform, rotation, unit

N_ROWS = 4000
SHAPES = (3, 1), (8, 3)  # D, c
RATIOS = 5, 10, 30
DEVIATION = {"Gauss": 1.0, "Laplace": np.sqrt(2), "Student 3": np.sqrt(3)}  # of scale 1
THICKNESS = {"half-width": 1.0, "deviation": np.sqrt(3)}  # half-width of deviation 1
SHARES = {0.3: "15 to 30 %", 0.45: "30 to 45 %", 0.6: "45 to 60 %"}
FACTOR = 1.5  # between `noise_` and the true noise, at the most


def draw(seed: int, case: int = 0) -> Problem:
    """Draw one plane in its slab."""
    del case
    rng = np.random.default_rng([1, seed])
    D, c = SHAPES[rng.integers(len(SHAPES))]
    law = list(DEVIATION)[rng.integers(len(DEVIATION))]
    ratio = int(rng.choice(RATIOS))
    thickness = list(THICKNESS)[rng.integers(len(THICKNESS))]
    share = float(rng.uniform(0.15, 0.6))
    size = "deviation" if law == "Gauss" else ("scale", "deviation")[rng.integers(2)]
    noise = float(log_uniform(rng, 0.01, 100))
    half = ratio * noise * THICKNESS[thickness]

    n_inliers = round(share * N_ROWS)
    scale = noise / (DEVIATION[law] if size == "deviation" else 1)
    across = np.r_[
        scale * _noise(rng, law, (n_inliers, c)),
        rng.uniform(-half, half, (N_ROWS - n_inliers, c)),
    ]
    along = rng.uniform(-10 * half, 10 * half, (N_ROWS, D - c))
    Q, order = rotation(rng, D), rng.permutation(N_ROWS)
    far = unit(rng.standard_normal((1, D)))[0] * 10 * half * log_uniform(rng, 0.1, 10)
    settings = {
        "shape": f"D = {D}, c = {c}",
        "ratio": ratio,
        "share": next(name for end, name in SHARES.items() if share <= end),
        "law": law,
        "thickness": thickness,
        "size": size,
    }
    return Problem(
        X=(np.c_[across, along] @ Q.T + far)[order],
        codimension=c,
        affine=True,
        normals=Q[:, :c].T,
        y=labels(n_inliers, N_ROWS - n_inliers)[order],
        settings=settings,
        known={"noise": noise, "deviation": scale * DEVIATION[law], "half_width": half, "far": far},
    )


def _noise(rng: np.random.Generator, law: str, size: tuple[int, int]) -> Any:
    """Draw noise of scale 1."""
    match law:
        case "Gauss":
            return rng.standard_normal(size)
        case "Laplace":
            return rng.laplace(size=size)
        case _:
            return rng.standard_t(3, size)


def score(problem: Problem, model: Any) -> Row:
    """Require the codimension, and the plane's noise instead of the slab's."""
    noise = model.noise_ / np.sqrt(problem.X.shape[1])  # along one direction
    found = model.codimension_ == problem.codimension

    def within(true: float) -> bool:
        return bool(found and 1 / FACTOR <= noise / true <= FACTOR)

    return {
        "right": within(problem.known["noise"]),
        "right_by_deviation": within(problem.known["deviation"]),
        "right_codimension": bool(found),
    }


SLAB = Suite(
    draws=300,
    draw=draw,
    score=score,
    by=(("ratio", "share"), ("ratio", "thickness"), ("law", "size"), ("shape",)),
)
