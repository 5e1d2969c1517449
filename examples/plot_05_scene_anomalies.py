"""
Anomalies in a hyperspectral scene
==================================

The spectra of a scene are mixtures of a few materials, so they lie near a subspace of a few
dimensions. What does not, a vehicle or a tarpaulin, stands out: it is off the subspace.
"""

# %%
# A scene, made up
# ----------------
# 40 x 50 pixels with 16 bands. Four smooth spectra are mixed smoothly, the illumination changes
# from place to place, the sensor has noise. 24 pixels in four places show something else, each
# place another material that fills 60 % of its pixels. ``cube`` has the shape that scenes have:
# height x width x bands.

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

from perpend import DPCP
from perpend.metrics import outlier_auc
from perpend.plots import COLORS

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
model = DPCP(random_state=1000).fit(X)
print(model.summary())

# %%
# Scores become images again. Beside it the RX detector, the usual first choice: the Mahalanobis
# distance from the mean of the scene.

distance = -model.score_samples(X)
centred = X - X.mean(axis=0)
rx = np.einsum("ij,jk,ik->i", centred, np.linalg.inv(np.cov(X.T)), centred)
truth = np.where(target.ravel(), -1, 1)
print(f"AUC of DPCP {outlier_auc(truth, -distance):.4f}, of RX {outlier_auc(truth, -rx):.4f}")

rgb = cube[..., [13, 8, 3]] / np.quantile(cube, 0.995)
fig, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
axes[0].imshow(np.clip(rgb, 0, 1))
axes[0].set_title("three bands of the scene")
image = axes[1].imshow(distance.reshape(height, width), cmap="cividis")
axes[1].set_title("distance to the subspace")
fig.colorbar(image, ax=axes[1], shrink=0.75)
axes[2].imshow(np.clip(rgb, 0, 1).mean(axis=2), cmap="gray")
found = (model.labels_ == -1).reshape(height, width)
axes[2].scatter(*np.nonzero(found)[::-1], s=9, color=COLORS[1], label="labelled")
axes[2].scatter(*np.nonzero(target)[::-1], s=30, ec=COLORS[5], fc="none", label="hidden")
axes[2].legend(loc="lower left", frameon=True)
axes[2].set_title("labels without a told share")
for ax in axes:
    ax.set_axis_off()
plt.show()
