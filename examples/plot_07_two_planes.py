"""
Two planes and a line, by peeling
=================================

Where the outliers have a structure of their own, one subspace is not the whole answer. `peel`
takes one after the other away and stops by itself.
"""

# %%
# Three structures in three dimensions, and points that belong to none
# --------------------------------------------------------------------
# Two planes through the origin, a line, and 80 points anywhere. How many structures there are,
# and of which dimension, is not told.

import matplotlib.pyplot as plt
import numpy as np

from perpend import peel
from perpend.plots import COLORS

rng = np.random.default_rng(0)


def on(basis, n):
    """Return n points near the span of the basis rows, with a noise of a hundredth."""
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
# Points near the origin are near everything, and short rows say little about their direction:
# ``normalize=False`` in the estimator keeps the lengths, so that distances are those of the room.

from perpend import DPCP

found = peel(X, estimator=DPCP(normalize=False), random_state=1000)
print(found.summary())

# %%
# Which row belongs to what: `labels` has the number of the subspace, -1 for none.

fig = plt.figure(figsize=(9.5, 4.4), layout="constrained")
before, after = (fig.add_subplot(1, 2, i, projection="3d") for i in (1, 2))
before.scatter(*X.T, s=3, color="0.4", depthshade=False)
before.set_title("what peel was given")
for k in range(-1, len(found.subspaces)):
    chosen = X[found.labels == k]
    name = "none" if k < 0 else f"{k}: dimension {len(found.subspaces[k].components)}"
    after.scatter(*chosen.T, s=3, color="0.75" if k < 0 else COLORS[k], label=name)
after.set_title("what it found")
after.legend(loc="upper left", markerscale=3)
for axis in (before, after):
    axis.view_init(24, 48)
    axis.set(xticklabels=[], yticklabels=[], zticklabels=[])
plt.show()

# %%
# How well the rows were shared out, structure by structure:

truth = np.repeat(np.arange(4), [len(part) for part in parts])
for k, subspace in enumerate(found.subspaces):
    origin = np.bincount(truth[subspace.members], minlength=4)
    print(f"subspace {k}: {origin[0]} from plane 1, {origin[1]} from plane 2,", end=" ")
    print(f"{origin[2]} from the line, {origin[3]} from nowhere")
