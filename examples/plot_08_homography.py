"""
A homography from matched points
================================

Two photographs of a plane are related by a homography: nine numbers. A correct match gives two
linear equations in them. This is a hyperplane in nine dimensions; wrong matches are outliers.
"""

# %%
# Synthetic matches
# -----------------
# 200 points of a poster seen in two views, and 200 wrong matches. Positions err by half a pixel.

import matplotlib.pyplot as plt
import numpy as np

from perpend import DPCP
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
# From matches to rows
# --------------------
# With x = (a, 1), the rows (x, 0, -b1 x) and (0, x, -b2 x) are orthogonal to the nine entries of
# H. First scale the points to about 1 (Hartley). Then rotate the two rows of each
# match by a random angle: they have zeros at fixed places, which would be a subspace of their own.
# The rotation changes neither their span nor their equation.


def scaling(points):
    """Return the map of points to mean zero and a mean length of sqrt(2)."""
    mean = points.mean(axis=0)
    s = np.sqrt(2) / np.linalg.norm(points - mean, axis=1).mean()
    return np.array([[s, 0, -s * mean[0]], [0, s, -s * mean[1]], [0, 0, 1]])


Ta, Tb = scaling(a), scaling(b)
x = np.column_stack([moved(Ta, a), np.ones(len(a))])
u = moved(Tb, b)
zero = np.zeros_like(x)
first, second = np.hstack([x, zero, -u[:, :1] * x]), np.hstack([zero, x, -u[:, 1:] * x])
t = rng.uniform(0, 2 * np.pi, (len(a), 1))
rows = np.vstack([np.cos(t) * first + np.sin(t) * second, np.cos(t) * second - np.sin(t) * first])

# %%
# The fit
# -------
# Codimension 1 means that there is one homography. A match is an inlier if both of its rows are.

model = DPCP(random_state=1000).fit(rows)
print(model.summary())
labels = model.labels_.reshape(2, -1).min(axis=0)
f1 = outlier_f1(np.where(right, 1, -1), labels, positive=1)
print(f"F1 of the correct matches {f1:.3f}")

estimate = np.linalg.inv(Tb) @ model.normals_[0].reshape(3, 3) @ Ta
grid = np.stack(np.meshgrid(*[np.linspace(0, s, 9) for s in size]), axis=-1).reshape(-1, 2)
error = np.linalg.norm(moved(estimate, grid) - moved(H, grid), axis=1)
print(f"error of the homography over the image: {error.max():.2f} pixels at most")

# %%
# The matches as lines from the first to the second view:

fig, axes = plt.subplots(2, 1, figsize=(4.6, 7), sharex=True, layout="constrained")
for axis, chosen, name in [(axes[0], labels == 1, "inliers"), (axes[1], labels == -1, "outliers")]:
    axis.plot(*np.stack([a[chosen], b[chosen]]).transpose(2, 0, 1), color="0.8", lw=0.6)
    axis.plot(*a[chosen].T, "o", ms=3, color=COLORS[0])
    axis.plot(*b[chosen].T, "o", ms=3, color=COLORS[1])
    axis.set(title=f"{chosen.sum()} {name}", aspect="equal")
    axis.invert_yaxis()
plt.show()
# sphinx_gallery_thumbnail_path = "_static/domains/matches.png"
