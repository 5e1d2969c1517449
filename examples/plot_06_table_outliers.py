"""
Outliers in a table, three detectors
====================================

Twelve sensors of a machine obey a few balances: what flows in flows out. A row that breaks one is
an outlier even if each of its values looks normal. Which detector sees it?
"""

# %%
# The table
# ---------
# Four quantities vary freely. The twelve sensors are linear in them, plus noise. In 8 % of the rows
# one sensor is wrong, by less than it varies anyway.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest

from perpend import DPCP
from perpend.metrics import outlier_auc, outlier_f1
from perpend.plots import COLORS

rng = np.random.default_rng(0)
n, n_bad = 1000, 80
mixing = rng.normal(size=(4, 12))
values = rng.normal(size=(n, 4)) @ mixing + rng.normal(0, 0.05, (n, 12))
bad = rng.choice(n, n_bad, replace=False)
sensor = rng.integers(0, 12, n_bad)
spread = values.std(axis=0)
values[bad, sensor] += rng.choice([-1, 1], n_bad) * rng.uniform(0.2, 1, n_bad) * spread[sensor]
table = pd.DataFrame(values + 20, columns=[f"sensor_{i + 1}" for i in range(12)])
truth = np.ones(n, dtype=int)
truth[bad] = -1

# %%
# Three detectors
# ---------------
# Those of scikit-learn are given the share of bad rows; `DPCP` is not. The sensors have a mean
# of 20, so the subspace does not pass through the origin: ``affine=True``.

detectors = {
    "DPCP(affine=True)": DPCP(affine=True, random_state=1000),
    "EllipticEnvelope, 8 % given": EllipticEnvelope(contamination=0.08, random_state=1000),
    "IsolationForest, 8 % given": IsolationForest(contamination=0.08, random_state=1000),
}
fig, axes = plt.subplots(3, 1, figsize=(5, 7), layout="constrained")
for axis, (name, detector) in zip(axes, detectors.items(), strict=True):
    labels = detector.fit_predict(table)
    scores = detector.score_samples(table)
    print(
        f"{name:28} AUC {outlier_auc(truth, scores):.3f}, F1 {outlier_f1(truth, labels):.3f}, "
        f"flagged {np.sum(labels == -1)}"
    )
    badness = -scores - np.min(-scores)
    badness = np.log10(np.maximum(badness, 1e-3 * badness.max()))
    bins = np.linspace(badness.min(), badness.max(), 40)
    axis.hist(badness[truth == 1], bins, color=COLORS[0], label="good rows")
    axis.hist(badness[truth == -1], bins, color=COLORS[1], alpha=0.8, label="bad rows")
    axis.set(title=name, xlabel="how unusual (log)", yscale="log")
axes[0].legend()
plt.show()

# %%
# Which sensor was it?
# --------------------
# `explain` gives, for each row, the share of its squared distance that one column can repair.

model = detectors["DPCP(affine=True)"]
share = model.explain(table)[bad]
print("the sensor blamed most is the wrong one in", np.sum(share.argmax(axis=1) == sensor), "of 80")

# %%
# Where the others are better: a machine at ten times its usual load obeys the balances. It is on
# the subspace, so `DPCP` does not flag it. A forest does.

far = pd.DataFrame(10 * rng.normal(size=(5, 4)) @ mixing + 20, columns=table.columns)
print("DPCP          ", model.predict(far))
print("IsolationForest", detectors["IsolationForest, 8 % given"].predict(far))
# sphinx_gallery_thumbnail_path = "_static/domains/rows.png"
