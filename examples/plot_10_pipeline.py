"""
In a scikit-learn pipeline
==========================

`DPCP` is a transformer and an outlier detector. Here it cleans the training rows of a classifier
and reduces its features, with pipelines, data frames and a grid search.
"""

# %%
# The data
# --------
# 300 good rows in 20 features depend on six quantities; the class is the sign of one of them. 300
# more rows are garbage with random classes.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from perpend import DPCP
from perpend.plots import COLORS

rng = np.random.default_rng(0)
basis = np.linalg.qr(rng.normal(size=(20, 6)))[0].T


def draw(n, n_garbage):
    """Return a table, the classes, and which rows are good."""
    hidden = rng.normal(size=(n, 6))
    X = np.vstack([hidden @ basis, 1.5 * rng.normal(size=(n_garbage, 20))])
    y = np.concatenate([hidden[:, 0] > 0, rng.random(n_garbage) > 0.5]).astype(int)
    X += 0.02 * rng.normal(size=X.shape)
    return pd.DataFrame(X, columns=[f"f{i}" for i in range(20)]), y, np.arange(len(X)) < n


X, y, good = draw(300, 300)
X_new, y_new, _ = draw(1000, 0)

# %%
# As a transformer
# ----------------
# With `set_output` the result is a data frame. Its columns are coordinates in the subspace.

model = DPCP(random_state=1000).set_output(transform="pandas").fit(X)
print(model.summary())
print(model.transform(X).head(3).round(2))

# %%
# As a filter and as a pipeline step
# ----------------------------------

kept = model.labels_ == 1
print("kept", kept.sum(), "of", len(X), "rows,", (kept & good).sum(), "of them good")


def accuracy(reduction, rows):
    """Return the accuracy of a classifier after the reduction, on new rows."""
    pipeline = make_pipeline(reduction, LogisticRegression())
    return pipeline.fit(X[rows], y[rows]).score(X_new, y_new)


everything = np.ones(len(X), dtype=bool)
scores = {
    "PCA(6),\nall rows": accuracy(PCA(6), everything),
    "DPCP,\nall rows": accuracy(DPCP(random_state=1000), everything),
    "DPCP,\nrows it kept": accuracy(DPCP(random_state=1000), kept),
}
fig, axis = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
bars = axis.bar(list(scores), list(scores.values()), color=[COLORS[1], COLORS[5], COLORS[0]])
axis.bar_label(bars, fmt="%.3f")
axis.set(ylabel="accuracy on new rows", ylim=(0.5, 1.05))
plt.show()

# %%
# In a grid search
# ----------------
# `DPCP` itself needs no search, but the steps after it may.

search = GridSearchCV(
    make_pipeline(DPCP(random_state=1000), LogisticRegression()),
    {"logisticregression__C": [0.1, 10]},
    cv=2,
)
print("best C", search.fit(X[kept], y[kept]).best_params_["logisticregression__C"])
