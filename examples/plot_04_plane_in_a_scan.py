"""
The floor of a scanned room
===========================

A plane in a point cloud does not run through the origin: ``affine=True`` finds where it is and
which way it lies. No threshold in centimetres, no number of draws.
"""

# %%
# A scan, made up
# ---------------
# A floor that is a little tilted, a box on it, a pillar, and points that hang in the air; in
# metres, in coordinates of a map, 500 km away from its origin.

import matplotlib.pyplot as plt
import numpy as np

from perpend import DPCP
from perpend.plots import COLORS, CloudDisplay

rng = np.random.default_rng(0)
origin = np.array([412_305.0, 5_318_220.0, 519.0])

floor = rng.uniform([-4, -3, 0], [4, 3, 0], (2000, 3))
box = rng.uniform([1, 0.5, 0], [2, 1.7, 0.9], (500, 3))
angle = rng.uniform(0, 2 * np.pi, 400)
pillar = np.column_stack(
    [-2 + 0.3 * np.cos(angle), -1 + 0.3 * np.sin(angle), rng.uniform(0, 2.5, 400)]
)
air = rng.uniform([-4, -3, 0], [4, 3, 2.5], (700, 3))
tilt = np.deg2rad(4)
turn = np.array([[np.cos(tilt), 0, np.sin(tilt)], [0, 1, 0], [-np.sin(tilt), 0, np.cos(tilt)]])
points = np.vstack([floor, box, pillar, air]) @ turn.T + origin
points[: len(floor)] += rng.normal(0, 0.01, floor.shape)  # the scanner errs by a centimetre

# %%
# The plane
# ---------

model = DPCP(affine=True, random_state=1000).fit(points)
print(model.summary())

# %%
# `normals_` and `intercept_` are the plane's equation, in the coordinates of the map, and
# `noise_` is in metres. The normal should be the floor's: 4 degrees from the vertical.

normal = model.normals_[0] * np.sign(model.normals_[0, 2])
true_normal = turn @ [0, 0, 1]
print("normal              ", np.round(normal, 4))
angle = np.rad2deg(np.arccos(min(1, normal @ true_normal)))
print(f"from the true one    {angle:.3f} degrees")
print(f"threshold            {model.threshold_:.3f} m")

# %%
# The cloud with the plane, and how far the points are above it.

fig = plt.figure(figsize=(10, 4.4), layout="constrained")
grid = fig.add_gridspec(1, 2, width_ratios=(3, 2))
scene = fig.add_subplot(grid[0], projection="3d")
CloudDisplay.from_estimator(model, points, n_points=2500, ax=scene)
scene.set(xticks=[], yticks=[])  # seven digits each
scene.view_init(14, -65)
height = fig.add_subplot(grid[1])
above = (points - model.location_) @ normal
height.hist(above, np.linspace(-0.4, 2.6, 120), color=COLORS[0])
for sign in (-1, 1):
    height.axvline(sign * model.threshold_, color=COLORS[1], lw=1, ls="--")
height.set(xlabel="height above the plane, m", ylabel="points", yscale="log")
plt.show()
