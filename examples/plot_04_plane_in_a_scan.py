"""
The floor of a scanned room
===========================

A plane in a point cloud does not pass through the origin, so use ``affine=True``. You need neither
a threshold in centimetres nor a number of draws.
"""

# %%
# A synthetic scan
# ----------------
# A slightly tilted floor, a box, a pillar, and points in the air. The unit is metres, in map
# coordinates: the origin is thousands of kilometres away.

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
points[: len(floor)] += rng.normal(0, 0.01, floor.shape)  # an error of one centimetre

# %%
# The plane
# ---------

model = DPCP(affine=True, random_state=1000).fit(points)
print(model.summary())

# %%
# `normals_` and `intercept_` are the equation of the plane in map coordinates, and `noise_` is in
# metres. The true normal is 4 degrees from the vertical.

normal = model.normals_[0] * np.sign(model.normals_[0, 2])
true_normal = turn @ [0, 0, 1]
print("normal              ", np.round(normal, 4))
angle = np.rad2deg(np.arccos(min(1, normal @ true_normal)))
print(f"from the true one    {angle:.3f} degrees")
off = model.uncertainty()
print(f"uncertain by         {off.angle:.3f} degrees, {off.offset:.4f} m (95 %)")
print(f"threshold            {model.threshold_:.3f} m")

# %%
# The cloud with the plane:

fig = plt.figure(figsize=(5.4, 4.2), layout="constrained")
scene = fig.add_subplot(projection="3d")
CloudDisplay.from_estimator(model, points, n_points=2500, ax=scene)
scene.set(xticks=[], yticks=[])  # seven digits each
scene.view_init(14, -65)
scene.set_box_aspect((4, 3, 1.6), zoom=1.3)
plt.show()

# %%
# The height of the points above the plane, with the threshold:

fig, height = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
above = (points - model.location_) @ normal
height.hist(above, np.linspace(-0.4, 2.6, 120), color=COLORS[0])
for sign in (-1, 1):
    height.axvline(sign * model.threshold_, color=COLORS[1], lw=1, ls="--")
height.set(xlabel="height above the plane, m", ylabel="points", yscale="log")
plt.show()
