"""
A first fit
===========

Six hundred of a thousand rows are garbage. The other four hundred lie on a subspace that nobody
has told anything about: neither its dimension nor how many rows are on it.
"""

# %%
# The rows, and what is hidden in them
# ------------------------------------
# `make_subspace` draws inliers from a random subspace of codimension 5, that is of dimension 25
# in 30 features, and outliers from everywhere. Only ``X`` is shown to the model.

import matplotlib.pyplot as plt
import numpy as np

from perpend import DPCP, subspace_error
from perpend.datasets import make_subspace
from perpend.plots import COLORS

data = make_subspace(
    n_inliers=400, n_outliers=600, n_features=30, codimension=5, noise=0.05, random_state=0
)

# %%
# The fit
# -------

model = DPCP(random_state=1000).fit(data.X)
print(model.summary())

# %%
# What nobody has in real life: the truth, to compare with.

print("subspace error", round(subspace_error(model.normals_, data.normals), 3))
print("labels right  ", int(np.sum(model.labels_ == data.y)), "of", len(data.y))

# %%
# Can I trust this?
# -----------------
# Left: the singular values of the directions that the descents found. They fall off behind the
# fifth one, so there are five independent normals. Right: the distances of the rows to the
# subspace. Two groups, and the threshold between them was found, not told.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
s = model.singular_values_ / model.singular_values_[0]
k = np.arange(1, len(s) + 1)
left.semilogy(k, s, "o", color=COLORS[6], mfc="white")
left.semilogy(k[: model.codimension_], s[: model.codimension_], "o", color=COLORS[0])
left.axvline(model.codimension_ + 0.5, color=COLORS[1], ls="--", label="codimension 5")
left.set(xlabel="number", ylabel="singular value, first one = 1", title="Directions found")
left.legend()

distance = -model.score_samples(data.X)
bins = np.linspace(0, distance.max(), 60)
right.hist(distance[data.y == 1], bins, color=COLORS[0], label="inliers (hidden)")
right.hist(distance[data.y == -1], bins, color=COLORS[4], alpha=0.8, label="outliers (hidden)")
right.axvline(model.threshold_, color=COLORS[1], ls="--", label="threshold found")
right.set(xlabel="sine of the angle to the subspace", ylabel="rows", title="Distances")
right.legend()
plt.show()
