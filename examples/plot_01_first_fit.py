"""
A first fit
===========

Six hundred of a thousand rows are garbage. The other four hundred lie on a subspace. `DPCP` is
given neither its dimension nor the number of rows on it.
"""

# %%
# The data
# --------
# `make_subspace` draws inliers from a random subspace of codimension 5, that is of dimension 25
# in 30 features, and outliers in all directions. The model sees only ``X``.

import matplotlib.pyplot as plt
import numpy as np

from perpend import DPCP, subspace_error
from perpend.datasets import make_subspace
from perpend.plots import DistanceDisplay

data = make_subspace(
    n_inliers=400, n_outliers=600, n_features=30, codimension=5, noise=0.05, random_state=0
)

# %%
# The fit
# -------

model = DPCP(random_state=1000).fit(data.X)
print(model.summary())

# %%
# Here the truth is known, so we can compare:

print("subspace error", round(subspace_error(model.normals_, data.normals), 3))
print("labels right  ", int(np.sum(model.labels_ == data.y)), "of", len(data.y))

# %%
# The distances of the rows to the subspace form two groups, with the threshold between them.

DistanceDisplay.from_estimator(model)
plt.show()

# %%
# Can I trust this?
# -----------------
# Four pictures help. The singular values of the directions drop after the fifth one, so there are
# five independent normals. The distances form two groups. The descents stopped as soon as the
# result was clear. The inliers spread along 25 axes, with only noise along the other five.

display = model.plot()
plt.show()

# %%
# Each display also describes itself in words:

print(display.description)
