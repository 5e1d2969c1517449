"""Whether the objective fails or the steps: what the page of the limits says, and from what."""

import numpy as np
import pytest

from perpend.experiments import Results
from perpend.experiments._trials import paper_data
from studies._landscape import landscape
from studies.limits import GEOMETRIC, PSGM, failing_steps


def test_few_outliers_leave_normals_the_minimisers_and_many_do_not():
    easy = landscape(paper_data(20, 2, 200, 200, 0), np.random.default_rng(0))
    assert easy["pull"] > 1
    assert easy["normals"] == easy["limits"]
    assert easy["at_limit"] > easy["at_normal"] - 1e-3 * easy["at_normal"]
    hard = landscape(paper_data(20, 2, 40, 2000, 0), np.random.default_rng(0))
    assert hard["pull"] < 1
    assert (hard["normals"], hard["at_limit"] < hard["at_normal"]) == (0, True)


@pytest.mark.parametrize("n_outliers", [100, 300, 1000])
def test_the_pull_is_the_slope_of_the_objective(n_outliers):
    """By the objective itself, a little way from the normal, along the axes and at random."""
    data = paper_data(5, 1, 60, n_outliers, 1)  # of one normal, up to sign
    found, n = landscape(data, np.random.default_rng(0)), data.normals[0]
    S, t = data.components, 1e-6
    V = np.random.default_rng(0).standard_normal((20_000, 4)) @ S
    V /= np.linalg.norm(V, axis=1, keepdims=True)

    def height(b):
        return np.abs(data.X @ b.T).sum(axis=0)

    rise = height(np.cos(t) * n + np.sin(t) * V) - height(n[None])
    assert (rise.min() > 0) == (found["pull"] > 1)


def test_the_page_blames_the_steps_where_normals_are_minimisers():
    cells = [(500, 0.5, 0.8, 0), (500, 0.6, 1.2, 4), (900, 0.5, 1.2, 0)]
    rows = [{"N": N, "r": r, "pull": pull, "normals": normals} for N, r, pull, normals in cells]
    trials = [
        {"N": N, "r": r, "method": name, "error": 0.0 if N == 900 and name == PSGM else 0.5}
        for N, r, *_ in cells
        for name in (PSGM, GEOMETRIC)
    ]
    found = failing_steps(Results("limits", True, {"landscape": rows, "trials": trials}, 0.0, {}))
    assert found == {
        0.5: {"minimisers": [900], "reached": [], "missed": []},
        0.6: {"minimisers": [500], "reached": [500], "missed": [500]},
    }
