"""
Two planes and a line, by peeling
=================================

If the outliers lie on a subspace of their own, one fit is not enough. `peel` finds one subspace,
removes its rows, and repeats until nothing is left.
"""

# %%
# The data
# --------
# Two planes through the origin, a line, and 80 points anywhere. `peel` is given neither their
# number nor their dimensions.

import matplotlib.pyplot as plt
import numpy as np

from perpend import peel
from perpend.plots import COLORS

rng = np.random.default_rng(0)


def on(basis, n):
    """Return n points near the span of the basis rows, with a noise of 0.01."""
    basis = np.linalg.qr(np.atleast_2d(basis).T)[0].T
    points = rng.uniform(-1, 1, (n, len(basis))) @ basis
    return points + rng.normal(0, 0.01, points.shape)


parts = [
    on([[1, 0, 0.2], [0, 1, 0.1]], 300),
    on([[0, 0.3, 1], [1, 0.6, 0]], 200),
    on([[1, -1, 1]], 120),
    rng.uniform(-1, 1, (80, 3)),
]
X = np.vstack(parts)

# %%
# Peeling
# -------
# Points near the origin are close to every subspace, and their direction means little. Use
# ``normalize=False`` to keep the lengths, so that distances are Euclidean.

from perpend import DPCP

found = peel(X, estimator=DPCP(normalize=False), random_state=1000)
print(found.summary())

# %%
# `labels` has the number of the subspace of each row, -1 for none.

fig = plt.figure(figsize=(5.4, 4.4), layout="constrained")
axes = fig.add_subplot(projection="3d")
for k in range(-1, len(found.subspaces)):
    chosen = X[found.labels == k]
    name = "none" if k < 0 else f"{k}: dimension {len(found.subspaces[k].components)}"
    axes.scatter(*chosen.T, s=5, color="0.75" if k < 0 else COLORS[k], label=name)
axes.legend(loc="upper left", markerscale=3)
axes.view_init(24, 48)
axes.set(xticklabels=[], yticklabels=[], zticklabels=[])
axes.set_box_aspect((1, 1, 1), zoom=1.15)
plt.show()

# %%
# Where the rows of each subspace come from:

truth = np.repeat(np.arange(4), [len(part) for part in parts])
for k, subspace in enumerate(found.subspaces):
    origin = np.bincount(truth[subspace.members], minlength=4)
    print(f"subspace {k}: {origin[0]} from plane 1, {origin[1]} from plane 2,", end=" ")
    print(f"{origin[2]} from the line, {origin[3]} from nowhere")
