"""
Anomalies in a hyperspectral scene
==================================

The spectra of a scene are mixtures of a few materials, so they lie near a subspace of a few
dimensions. A vehicle or a tarpaulin is off that subspace, or far out within it.
"""

# %%
# A synthetic scene
# -----------------
# 40 x 50 pixels with 16 bands. Four smooth spectra are mixed smoothly, the illumination varies,
# and the sensor has noise. 24 pixels in four places are anomalies: another material covers
# 60 % of each of them. ``cube`` has the shape height x width x bands.

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

from perpend import DPCP
from perpend.metrics import outlier_auc
from perpend.plots import DistanceMapDisplay, MaskDisplay

rng = np.random.default_rng(0)
height, width, bands = 40, 50, 16
wavelength = np.linspace(0, 1, bands)


def spectrum():
    """Return a smooth positive spectrum."""
    centres, widths = rng.uniform(0, 1, 4), rng.uniform(0.05, 0.3, 4)
    bumps = np.exp(-(((wavelength[:, None] - centres) / widths) ** 2))
    return 0.2 + bumps @ rng.uniform(0, 1, 4)


materials = np.array([spectrum() for _ in range(4)])
fields = np.array([gaussian_filter(rng.normal(size=(height, width)), 8) for _ in range(4)])
shares = np.exp(1.5 * fields / fields.std())
shares /= shares.sum(axis=0)
cube = np.einsum("mij,mb->ijb", shares, materials)
light = gaussian_filter(rng.normal(size=(height, width)), 5)
cube *= 1 + 0.2 * (light / light.std())[..., None]
target = np.zeros((height, width), dtype=bool)
for row, column in [(8, 10), (10, 38), (27, 18), (32, 41)]:
    place = np.s_[row : row + 2, column : column + 3]
    target[place] = True
    cube[place] = 0.4 * cube[place] + 0.6 * spectrum()
cube += rng.normal(0, 0.01, cube.shape)

# %%
# Pixels become rows
# ------------------

X = cube.reshape(-1, bands)
model = DPCP(affine=True, outliers="both", random_state=1000).fit(X)
print(model.summary())

# %%
# The outliers over the scene in false colours, and how far out every pixel is:

fig, axes = plt.subplots(1, 2, figsize=(9.6, 4), layout="constrained")
MaskDisplay.from_estimator(model, cube, bands=[13, 8, 3], ax=axes[0])
DistanceMapDisplay.from_estimator(model, cube, ax=axes[1])
plt.show()

# %%
# Compared with RX
# ----------------
# The RX detector is the usual first choice: the Mahalanobis distance from the mean of the scene.
# Anomalies take part in that mean and in its covariance.

distance = -model.score_samples(X)
centred = X - X.mean(axis=0)
rx = np.einsum("ij,jk,ik->i", centred, np.linalg.inv(np.cov(X.T)), centred)
truth = np.where(target.ravel(), -1, 1)
print(f"AUC of DPCP {outlier_auc(truth, -distance):.4f}, of RX {outlier_auc(truth, -rx):.4f}")

fig, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for axis, values, name in [(axes[0], distance, "DPCP"), (axes[1], np.sqrt(rx), "RX")]:
    picture = axis.imshow(values.reshape(height, width), cmap="cividis")
    axis.set_title(name)
    axis.set_axis_off()
    fig.colorbar(picture, ax=axis, shrink=0.75)
plt.show()

# %%
# The labels need no share of anomalies:

found = (model.labels_ == -1).reshape(height, width)
print(f"{np.sum(found & target)} of {target.sum()} anomalies found, {np.sum(found)} labelled")
