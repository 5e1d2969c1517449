"""
Noise, and how sure an answer is
================================

Inliers are never exactly on their subspace. `DPCP` measures how far they are off (``noise_``), and
its confidence falls where noise makes the codimension unclear, before the answer becomes wrong.
"""

# %%
# The same problem with growing noise: 12 features, codimension 4, half of the rows outliers. A
# noise of 0.3 means that an inlier of length one is moved by a vector of length 0.3.

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
# Left: the noise that was measured against the noise that is there. Right: the confidence; from
# 0.95 on an answer is called *sure*. Crosses are answers with a wrong codimension.

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
left.plot(levels, levels, color="0.6", lw=1, label="as it is")
right.axhline(0.95, color=COLORS[1], ls="--", label="sure from here on")
for noise, row in zip(levels, runs, strict=True):
    for model, _ in row:
        good = model.codimension_ == 4
        style = {"marker": "o" if good else "x", "color": COLORS[0] if good else COLORS[1]}
        left.plot(noise, model.noise_, **style)
        right.plot(noise, model.confidence_, **style)
left.set(xlabel="noise", ylabel="noise_", title="Noise that was measured")
right.set(xlabel="noise", ylabel="confidence_", ylim=(-0.03, 1.05), title="Confidence")
left.legend()
right.legend(loc="lower left")
plt.show()

# %%
# An answer that is not sure always comes with a reason, and with what would help:

unsure = [remark for row in runs for _, remarks in row for remark in remarks]
print(unsure[0])

# %%
# The evidence behind it
# ----------------------
# `evidence_` holds the numbers. Here for little and for much noise: by what factor the inliers'
# variances rise behind the fourth axis, and the largest such factor elsewhere.

for i in (1, 3, 6):
    evidence = runs[i][0][0].evidence_
    if "inlier_gap" in evidence:
        gap, other = evidence["inlier_gap"], evidence["inlier_gap_runner_up"]
        print(f"noise {levels[i]}: rises by {gap:.3g} there, by up to {other:.3g} elsewhere")
    else:
        print(f"noise {levels[i]}: no subspace was found")
