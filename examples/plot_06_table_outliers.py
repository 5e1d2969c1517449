"""
Outliers in a table, beside other detectors
===========================================

Twelve sensors of a machine obey a few balances: what flows in flows out. A row that breaks one is
an outlier although each of its values alone looks normal. Which detector sees it?
"""

# %%
# The table
# ---------
# Four quantities vary freely, and all twelve sensors are sums and differences of them plus noise.
# In 8 % of the rows a single sensor is wrong, by less than the sensor varies anyway.

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
# The two of scikit-learn are told the share of bad rows; `DPCP` is not. The sensors have a mean
# of 20, so the subspace does not run through the origin: ``affine=True``.

detectors = {
    "DPCP(affine=True)": DPCP(affine=True, random_state=1000),
    "EllipticEnvelope, told 8 %": EllipticEnvelope(contamination=0.08, random_state=1000),
    "IsolationForest, told 8 %": IsolationForest(contamination=0.08, random_state=1000),
}
fig, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
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
# `explain` says for each row by how much a change of one column alone would mend it.

model = detectors["DPCP(affine=True)"]
share = model.explain(table)[bad]
print("the sensor blamed most is the wrong one in", np.sum(share.argmax(axis=1) == sensor), "of 80")

# %%
# Where the others are better: outliers that obey the balances, a machine at ten times its usual
# load say, are on the subspace, and `DPCP` does not flag them. A forest does.

far = pd.DataFrame(10 * rng.normal(size=(5, 4)) @ mixing + 20, columns=table.columns)
print("DPCP          ", model.predict(far))
print("IsolationForest", detectors["IsolationForest, told 8 %"].predict(far))
