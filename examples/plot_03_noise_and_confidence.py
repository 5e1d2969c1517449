"""
Noise and confidence
====================

Real inliers are never exactly on their subspace. `DPCP` estimates how far they are off
(``noise_``). Its confidence drops when noise makes the codimension unclear, before it gets wrong.
"""

# %%
# The same problem with growing noise: 12 features, codimension 4, half of the rows outliers. With
# a noise of 0.3, an inlier of length 1 is moved by a vector of length 0.3.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from perpend import DPCP
from perpend.datasets import make_subspace
from perpend.exceptions import CodimensionWarning
from perpend.plots import COLORS

levels = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])


def fitted(noise, seed):
    """Return a model of data with that noise, and the warning that came with it."""
    data = make_subspace(200, 200, n_features=12, codimension=4, noise=noise, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DPCP(random_state=seed + 1000).fit(data.X)
    doubts = [w for w in caught if w.category is CodimensionWarning]
    return model, [str(doubt.message) for doubt in doubts]


runs = [[fitted(noise, seed) for seed in range(2)] for noise in levels]

# %%
# From a confidence of 0.95 on, a result is called *sure*. Crosses have a wrong codimension.


def draw(axes, attribute):
    """Draw an attribute of all models over the noise."""
    for noise, row in zip(levels, runs, strict=True):
        for model, _ in row:
            good = model.codimension_ == 4
            style = {"marker": "o" if good else "x", "color": COLORS[0] if good else COLORS[1]}
            axes.plot(noise, getattr(model, attribute), **style)
    axes.set(xlabel="noise", ylabel=attribute)
    axes.legend(loc="best")


fig, axes = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
axes.axhline(0.95, color=COLORS[1], ls="--", label="sure from here on")
draw(axes, "confidence_")
plt.show()

# %%
# The estimated noise against the true noise:

fig, axes = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
axes.plot(levels, levels, color="0.6", lw=1, label="true noise")
draw(axes, "noise_")
plt.show()

# %%
# A result that is not sure comes with the reason and with what would help:

unsure = [remark for row in runs for _, remarks in row for remark in remarks]
print(unsure[0])

# %%
# The evidence behind it
# ----------------------
# `evidence_` holds the numbers. Here: the factor by which the inliers' variances rise after the
# fourth axis, and the largest such factor elsewhere.

for i in (1, 3, 6):
    evidence = runs[i][0][0].evidence_
    if "inlier_gap" in evidence:
        gap, other = evidence["inlier_gap"], evidence["inlier_gap_runner_up"]
        print(f"noise {levels[i]}: rise {gap:.3g} there, at most {other:.3g} elsewhere")
    else:
        print(f"noise {levels[i]}: no subspace was found")
