"""Outliers in tables, beside the detectors of scikit-learn and PyOD.

Nobody promises that the ordinary rows of such a table lie near a subspace. Columns have units of
their own, so each is centred by its median and scaled by its quartiles, for all methods alike:
outliers move neither.
"""

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row, Tables
from perpend.experiments._trials import fitted, starts_rng
from perpend.metrics import outlier_auc
from studies import _real_page as page
from studies._real_files import read_arrays
from studies._real_references import principal_axes, residuals

OPTIONS: dict[str, Any] = {}  # of DPCP: affine=True belongs here, as tables have no origin
RELATIVE = "DPCP(), relative distance"
VARIANCE = 0.95  # that the PCA residual leaves to the subspace
PYOD = {"ECOD": "ecod", "COPOD": "copod", "HBOS": "hbos", "KNN": "knn", "PCA": "pca"}
IQR = 1.349  # quartiles of a standard normal variable are this far apart


def run(case: Case) -> Tables:
    """Score the rows of one table by every detector; those without chance only once."""
    from perpend import DPCP

    X, anomaly = read_arrays(case["path"], "X", "y")
    X, y = robustly_scaled(X.astype(float)), np.where(anomaly == 1, -1, 1)
    seed = case["seed"]
    model, seconds = fitted(DPCP(random_state=starts_rng(seed), **OPTIONS), X)
    about = {"codimension": int(model.codimension_), "confidence": float(model.confidence_)}
    rows = [
        _row(page.OURS, "perpend", y, -model.distance(X), seconds) | about,
        _row(RELATIVE, "perpend", y, model.score_samples(X), seconds) | about,
    ]
    for name, (package, score) in _detectors(X, seed).items():
        began = time.process_time()
        values = score()
        rows.append(_row(name, package, y, values, time.process_time() - began))
    given = {"data": Path(case["path"]).stem.split("_")[1], "seed": seed}
    return {"detectors": [{**given, **row} for row in rows]}


def robustly_scaled(X: Array) -> Array:
    """Centre columns by their median and divide them by their quartiles' distance.

    Where half of the values are equal, the standard deviation stands in; constant columns go.
    """
    low, middle, high = np.percentile(X, [25, 50, 75], axis=0)
    scale = np.where(high > low, (high - low) / IQR, X.std(axis=0))
    kept = scale > 0
    return np.asarray((X - middle)[:, kept] / scale[kept])


def _row(name: str, package: str, y: Array, scores: Array, seconds: float) -> Row:
    return {
        "method": name,
        "package": package,
        "codimension": None,
        "confidence": None,
        "auc": outlier_auc(y, scores),
        "seconds": seconds,
    }


def _detectors(X: Array, seed: int) -> dict[str, tuple[str, Callable[[], Array]]]:
    """Return functions that score the rows, higher for inliers; defaults everywhere."""
    from sklearn.covariance import EllipticEnvelope
    from sklearn.ensemble import IsolationForest
    from sklearn.neighbors import LocalOutlierFactor
    from sklearn.svm import OneClassSVM

    own = "scikit-learn"
    found: dict[str, tuple[str, Callable[[], Array]]] = {
        "IsolationForest": (
            own,
            lambda: IsolationForest(random_state=seed).fit(X).score_samples(X),
        ),
        "EllipticEnvelope": (
            own,
            lambda: EllipticEnvelope(random_state=seed).fit(X).score_samples(X),
        ),
    }
    if seed == 0:
        found |= {
            "LocalOutlierFactor": (
                own,
                lambda: LocalOutlierFactor().fit(X).negative_outlier_factor_,
            ),
            "OneClassSVM": (own, lambda: OneClassSVM().fit(X).score_samples(X)),
            "PCA residual, 95 % of variance": ("NumPy", lambda: -_pca_residual(X)),
        }
        found |= {f"PyOD {name}": ("PyOD", _pyod(name, X)) for name in PYOD if has_pyod()}
    return found


def has_pyod() -> bool:
    """Whether PyOD is there. Only this experiment knows it."""
    return find_spec("pyod") is not None


def _pyod(name: str, X: Array) -> Callable[[], Array]:
    def score() -> Array:
        detector = getattr(import_module(f"pyod.models.{PYOD[name]}"), name)()
        return -np.asarray(detector.fit(X).decision_scores_)

    return score


def _pca_residual(X: Array) -> Array:
    centred = X - X.mean(axis=0)
    axes = principal_axes(centred, min(X.shape))
    explained = np.cumsum(np.var(centred @ axes.T, axis=0))
    d = int(np.searchsorted(explained, VARIANCE * explained[-1])) + 1
    return residuals(centred, axes[:d])


# -- looking at the results --------------------------------------------------------------------


def draw(results: Results) -> dict[str, Any]:
    """Draw AUC of every detector on every table."""
    from perpend import plots

    panels = {
        name: {
            method: page.numbers(results, "detectors", "auc", data=name, method=method)
            for method in results.values("detectors", "method")
        }
        for name in results.values("detectors", "data")
    }
    return {"detectors": plots.dots(panels, xlabel="AUC", highlight=page.OURS, columns=len(panels))}


def numbers(results: Results) -> dict[str, Any]:
    """Return the mean of every detector, the best first."""
    means = {
        method: np.mean(page.over_items(results, "detectors", "auc", "data", method))
        for method in results.values("detectors", "method")
    }
    order = sorted(means, key=lambda method: -means[method])
    return {
        "means": means,
        "first": order[0],
        "place": order.index(page.OURS) + 1,
        "pyod": "PyOD" in results.values("detectors", "package"),
    }
