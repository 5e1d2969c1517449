"""Real data: road planes in LiDAR frames, where the published line search collapses.

Its test asks for a decrease in proportion to ||g||^2 = f^2 + ||G||^2, of which only ||G||^2 can be
had. So it cannot pass once ||G|| / f is below sqrt(1e-3) = 0.0316, and the step runs to its floor.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from perpend.rows import as_rows, row_span
from perpend.solvers import AutoStep, MBLSStep, psgm, spectral_starts

FRAMES = {  # frame: objective at which the published rule stops, objective of a longer descent
    "kitti_0929_0071_0221": (6301.193, 6301.008),
    "kitti_0929_0071_0328": (5060.825, 5060.791),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_the_published_rule_collapses_and_auto_does_not(frame: str) -> None:
    folder = os.environ.get("PERPEND_DATA")
    path = Path(folder or "") / "kitti_roadplane" / f"{frame}.npz"
    if not folder or not path.exists():
        pytest.skip("PERPEND_DATA does not name a folder with kitti_roadplane/")
    with np.load(path) as archive:
        points = archive["points"].astype(float)
    rows = as_rows(np.hstack([points, np.ones((len(points), 1))]))
    start = spectral_starts(row_span(rows), 1)
    collapsed, reached = FRAMES[frame]
    published = psgm(rows, start, rule=MBLSStep(), max_iter=200, tol=1e-9)
    assert published.objective[0] == pytest.approx(collapsed, abs=1e-3)
    assert published.n_iter[0] < 30
    own = psgm(rows, start, rule=AutoStep(), max_iter=1000, tol=1e-9)
    assert own.objective[0] <= reached + 1e-3
