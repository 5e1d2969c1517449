"""
More and more outliers, compared with PCA
=========================================

PCA minimises squares, so far-away points dominate it. Here the share of outliers grows from none
to 90 %. PCA is *given* the right dimension; `DPCP` is given only the rows.
"""

# %%
# Two data sets for each share of outliers. The subspace error is the sine of the largest angle
# between the estimated and the true subspace: 0 is perfect; a wrong dimension counts as 1.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from perpend import DPCP, subspace_error
from perpend.datasets import make_subspace
from perpend.plots import COLORS

D, c, n_inliers = 30, 4, 300
shares = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9])


def errors(share, seed):
    """Return the errors of PCA and DPCP, and the codimension and confidence of DPCP."""
    n_outliers = round(n_inliers * share / (1 - share))
    data = make_subspace(
        n_inliers, n_outliers, n_features=D, codimension=c, noise=0.02, random_state=seed
    )
    pca = PCA(D - c).fit(np.vstack([data.X, -data.X]))  # rows and their mirror images: no centre
    model = DPCP(random_state=seed + 1000).fit(data.X)
    ours = subspace_error(model.normals_, data.normals)
    return subspace_error(pca.components_, data.components), ours, model


results = [[errors(share, seed) for seed in range(2)] for share in shares]
of_pca = np.array([[pca for pca, _, _ in row] for row in results])
of_dpcp = np.array([[ours for _, ours, _ in row] for row in results])

# %%
# Dots are data sets, lines are medians.

fig, axes = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
for values, color, name in [
    (of_pca, COLORS[1], "PCA, dimension given"),
    (of_dpcp, COLORS[0], "DPCP(), nothing given"),
]:
    axes.plot(100 * shares, np.median(values, axis=1), color=color, label=name)
    axes.plot(100 * shares, values, "o", color=color, ms=4)
axes.set(xlabel="outliers, %", ylabel="subspace error", ylim=(-0.03, 1.05))
axes.legend()
plt.show()

# %%
# The codimension and the confidence. At 90 % outliers one result is wrong, and it is not sure: the
# warning above says why.

print("outliers  codimension           confidence")
for share, row in zip(shares, results, strict=True):
    found = ", ".join(str(model.codimension_) for _, _, model in row)
    sure = ", ".join(f"{model.confidence_:.2f}" for _, _, model in row)
    print(f"{share:7.0%}   {found:20}  {sure}")
