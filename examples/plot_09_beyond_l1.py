"""
Stretched inliers, and beyond the l1 limit
==========================================

The published algorithm minimises a sum of absolute values, and there is a share of outliers from
which on the true normals no longer minimise it. `DPCP` has a second engine that goes on from there.
"""

# %%
# Two hard kinds of data
# ----------------------
# *Stretched* inliers vary along some axes of their subspace ten times as much as along others, so
# the weak axes look like normals. *Many outliers*: 84 % of the rows, in 40 features with
# codimension 3. ``refine=False`` is the paper's algorithm alone, as its authors' releases run it.

import warnings
from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np

from perpend import DPCP, RSGM, subspace_error
from perpend.datasets import make_subspace
from perpend.plots import COLORS

problems = {
    "half outliers": {"n_inliers": 400, "n_outliers": 400},
    "stretched, 60 %": {"n_inliers": 400, "n_outliers": 600, "stretch": 0.1},
    "84 % outliers": {"n_inliers": 400, "n_outliers": 2100},
}
methods = {
    "descents alone": {"step": "mbls", "refine": False, "n_starts": 9, "max_iter": 200},
    "DPCP()": {},
}


def error(model, data):
    """Return the subspace error of a fit; doubts and caps are no news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X)
    return subspace_error(model.normals_, data.normals)


errors = defaultdict(list)
for problem, options in problems.items():
    for seed in range(3):
        data = make_subspace(**options, n_features=40, codimension=3, random_state=seed)
        models = {name: DPCP(**some, random_state=seed + 1000) for name, some in methods.items()}
        for name, model in {**models, "RSGM, told 3": RSGM(3)}.items():
            errors[problem, name].append(error(model, data))

# %%
# Each dot is a data set. An error of one means a wrong codimension or a lost normal; without noise
# a recovered subspace is exact to rounding.

names = [*methods, "RSGM, told 3"]
fig, axes = plt.subplots(1, 3, figsize=(10, 3.3), sharey=True, layout="constrained")
for axis, problem in zip(axes, problems, strict=True):
    for i, name in enumerate(names):
        values = np.maximum(errors[problem, name], 1e-16)
        axis.semilogy(i + np.linspace(-0.15, 0.15, 3), values, "o", color=COLORS[i])
    axis.set(title=problem, xticks=range(3), xlim=(-0.5, 2.5), ylim=(1e-17, 10))
    axis.set_xticklabels(names, rotation=20)
axes[0].set_ylabel("subspace error")
plt.show()

# %%
# How it goes on: the second engine weighs each row by how likely it is an inlier and fits all
# normals at once. :doc:`/maths` has the formulas, :doc:`/reproduction` the map of both limits.
