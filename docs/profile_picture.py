"""The picture of "How perpend decides": a road inside a street, and the scales at which both show.

Run ``python docs/profile_picture.py`` to make it again, from synthetic points and a real fit.
"""

from pathlib import Path

import numpy as np

from perpend import DPCP
from perpend.plots import COLORS, ProfileDisplay, figure

TARGET = Path(__file__).parent / "_static" / "profile.png"


def street():
    """Return 3000 points of a slab two metres thick, 1200 of them on a plane inside."""
    rng = np.random.default_rng(0)
    points = rng.uniform([-20, -20, -1], [20, 20, 1], (3000, 3))
    points[:1200, 2] = rng.normal(0, 0.05, 1200)  # the road
    return points


def draw() -> None:
    """Fit the road, and draw the street from the side beside its profile."""
    points = street()
    model = DPCP(affine=True, random_state=1000).fit(points)
    inlier = model.labels_ == 1
    x, z = points[:, 0], points[:, 2]
    with figure(1, 2, panel=(3.75, 3.2), width_ratios=[1, 1.12]) as (fig, axes):
        side, profile = axes.ravel()
        side.plot(x[~inlier], z[~inlier], ".", color="0.62", markersize=2.5, label="the street")
        side.plot(x[inlier], z[inlier], ".", color=COLORS[0], markersize=2.5, label="the road")
        side.set(title="a street from the side, 3000 points", xlabel="x (m)", ylabel="z (m)")
        side.set(ylim=(-1.15, 1.55), xlim=(-20.5, 20.5))
        side.legend(loc="upper center", ncols=2, markerscale=4, handletextpad=0.2)
        side.grid(visible=False)
        ProfileDisplay.of(model).plot(profile)
        profile.set(title="its profile", xlabel="scale (m)")
        fig.savefig(TARGET, dpi=170)


if __name__ == "__main__":
    draw()
