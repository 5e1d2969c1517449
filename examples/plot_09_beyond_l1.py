"""
Stretched inliers, and beyond the l1 limit
==========================================

The published algorithm minimises a sum of absolute values. Above some share of outliers the true
normals no longer minimise it. There `DPCP` continues with reweighted least squares.
"""

# %%
# Hard data
# ---------
# *Stretched* inliers vary ten times as much along some axes of their subspace as along others, so
# the weak axes look like normals. *Many outliers*: 84 % of the rows. Both have 40 features and
# codimension 3. ``refine=False`` is the paper's algorithm alone, with the line search of the same
# group's code.

import warnings
from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np

from perpend import DPCP, RSGM, subspace_error
from perpend.datasets import make_subspace
from perpend.plots import COLORS

problems = {
    "50 %": {"n_inliers": 400, "n_outliers": 400},
    "60 %, stretched": {"n_inliers": 400, "n_outliers": 600, "stretch": 0.1},
    "84 %": {"n_inliers": 400, "n_outliers": 2100},
}
methods = {
    "descents alone": {"step": "mbls", "refine": False, "n_starts": 9, "max_iter": 200},
    "DPCP()": {},
}


def error(model, data):
    """Return the subspace error of a fit; warnings are not shown here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X)
    return subspace_error(model.normals_, data.normals)


errors = defaultdict(list)
for problem, options in problems.items():
    for seed in range(3):
        data = make_subspace(**options, n_features=40, codimension=3, random_state=seed)
        models = {name: DPCP(**some, random_state=seed + 1000) for name, some in methods.items()}
        for name, model in {**models, "RSGM, c given": RSGM(3)}.items():
            errors[problem, name].append(error(model, data))

# %%
# Each dot is a data set. An error of 1 means a wrong codimension or a lost normal. There is no
# noise, so a recovered subspace is exact to rounding.

fig, axes = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
for i, name in enumerate([*methods, "RSGM, c given"]):
    values = np.maximum([errors[problem, name] for problem in problems], 1e-16)
    x = np.arange(3)[:, None] + 0.25 * (i - 1) + np.linspace(-0.06, 0.06, 3)
    axes.semilogy(x.ravel(), values.ravel(), "o", color=COLORS[i], label=name)
axes.set(xlabel="outliers", ylabel="subspace error", ylim=(1e-17, 1e4))
axes.set_xticks(range(3), problems)
axes.legend(loc="upper center", ncols=3, columnspacing=0.8, handletextpad=0.1)
plt.show()

# %%
# Reweighting weights each row by its probability of being an inlier and fits all normals at once.
# :doc:`/maths` has the formulas, :doc:`/reproduction` the map of both limits.
