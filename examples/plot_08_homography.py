"""
A homography from matched points
================================

Two photographs of a plane are related by a homography: nine numbers. A correct match gives two
linear equations in them: a hyperplane in nine dimensions, and wrong matches are outliers.
:func:`perpend.homography` looks there, and compares and polishes what it finds in pixels.
"""

# %%
# Synthetic matches
# -----------------
# 200 points of a poster seen in two views, and 200 wrong matches. Positions err by half a pixel.

import matplotlib.pyplot as plt
import numpy as np

from perpend import homography
from perpend.metrics import outlier_f1
from perpend.plots import COLORS

rng = np.random.default_rng(0)
H = np.array([[0.85, -0.18, 120.0], [0.12, 0.9, -20.0], [2e-4, -1e-4, 1.0]])
size = np.array([640.0, 480.0])


def moved(H, points):
    """Return where the homography maps the points."""
    image = np.column_stack([points, np.ones(len(points))]) @ H.T
    return image[:, :2] / image[:, 2:]


a = rng.uniform(0, size, (400, 2))
right = np.arange(400) < 200
b = np.where(right[:, None], moved(H, a), rng.uniform(0, size, (400, 2)))
a, b = a + rng.normal(0, 0.5, a.shape), b + rng.normal(0, 0.5, b.shape)

# %%
# The fit
# -------
# No threshold in pixels is needed: the noise is estimated. The result unpacks as OpenCV's.

found = homography(a, b, random_state=0)
estimate, mask = found
print(found)
f1 = outlier_f1(np.where(right, 1, -1), np.where(mask, 1, -1), positive=1)
print(f"F1 of the correct matches {f1:.3f}")

grid = np.stack(np.meshgrid(*[np.linspace(0, s, 9) for s in size]), axis=-1).reshape(-1, 2)
error = np.linalg.norm(moved(estimate, grid) - moved(H, grid), axis=1)
print(f"error of the homography over the image: {error.max():.2f} pixels at most")

# %%
# How likely each match is correct, by its error: the two groups do not overlap here.

transfer = np.linalg.norm(moved(estimate, a) - b, axis=1)
fig, axis = plt.subplots(figsize=(5, 2.8), layout="constrained")
for chosen, name, color in [(right, "correct", COLORS[0]), (~right, "wrong", COLORS[1])]:
    axis.semilogx(transfer[chosen], found.probability[chosen], ".", color=color, label=name)
axis.set(xlabel="transfer error in pixels", ylabel="probability of a correct match")
axis.legend()

# %%
# The matches as lines from the first to the second view:

fig, axes = plt.subplots(2, 1, figsize=(4.6, 7), sharex=True, layout="constrained")
for axis, chosen, name in [(axes[0], mask, "inliers"), (axes[1], ~mask, "outliers")]:
    axis.plot(*np.stack([a[chosen], b[chosen]]).transpose(2, 0, 1), color="0.8", lw=0.6)
    axis.plot(*a[chosen].T, "o", ms=3, color=COLORS[0])
    axis.plot(*b[chosen].T, "o", ms=3, color=COLORS[1])
    axis.set(title=f"{chosen.sum()} {name}", aspect="equal")
    axis.invert_yaxis()
plt.show()
# sphinx_gallery_thumbnail_path = "_static/domains/matches.png"
