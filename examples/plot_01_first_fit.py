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
# Four pictures answer that. The singular values of the directions that the descents found fall
# off behind the fifth one, so there are five independent normals. The distances of the rows form
# two groups, and the threshold between them was found, not told. The descents stopped as soon as
# the answer was clear. And the inliers spread along 25 axes, with noise alone along the other five.

display = model.plot()
plt.show()

# %%
# Each picture can say in words what it shows:

print(display.description)
# sphinx_gallery_thumbnail_path = "_static/result.png"
