"""The picture at the top of the README: a plane among garbage, before and after the fit.

Run ``python docs/result_picture.py`` to make it again, from real data and a real fit.
"""

from pathlib import Path

import numpy as np

from perpend import DPCP
from perpend.plots import COLORS, figure

TARGET = Path(__file__).parent / "_static" / "result.png"


def rows():
    """Return 300 points near a plane that misses the origin, and 700 anywhere in the cube."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (2, 300))
    plane = np.column_stack([x, y, 0.25 + 0.35 * x - 0.3 * y + rng.normal(0, 0.01, 300)])
    X = np.vstack([plane, rng.uniform(-1, 1, (700, 3))])
    return X[rng.permutation(len(X))]


def draw() -> None:
    """Fit the plane, and draw the cloud before and after."""
    X = rows()
    model = DPCP(affine=True, random_state=1000).fit(X)
    inlier = model.labels_ == 1
    x, y = np.meshgrid([-1, 1], [-1, 1])
    a, b, c = model.normals_[0]
    z = (model.intercept_[0] - a * x - b * y) / c  # a x + b y + c z = intercept
    with figure(1, 2, panel=(4.4, 3.9), subplot_kw={"projection": "3d"}) as (fig, axes):
        before, after = axes.ravel()
        before.scatter(*X.T, s=4, color="0.45", depthshade=False)
        before.set_title("1000 rows, 70 % of them garbage")
        after.scatter(*X[~inlier].T, s=2, color="0.6", alpha=0.5, label="outliers")
        after.scatter(*X[inlier].T, s=7, color=COLORS[0], depthshade=False, label="inliers")
        after.plot_surface(x, y, z, color=COLORS[0], alpha=0.2, linewidth=0)
        confidence = f"confidence {model.confidence_:.2f}"
        after.set_title(f"found: dimension {model.n_components_}, {confidence}")
        after.legend(loc="upper left", bbox_to_anchor=(-0.1, 1), markerscale=2)
        for axis in (before, after):
            axis.view_init(12, -62)
            axis.set(xticklabels=[], yticklabels=[], zticklabels=[])
            axis.set_box_aspect((1, 1, 1), zoom=1.2)
        fig.savefig(TARGET, dpi=110)


if __name__ == "__main__":
    draw()
