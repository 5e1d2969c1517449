"""One person's face among other people's.

Images of a face under all kinds of light lie near a subspace of about nine dimensions. The rows are
64 images of one person and a share of images of others: far fewer rows than pixels.
"""

import time
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row, Tables
from perpend.experiments._trials import fitted, percent, starts_rng
from perpend.metrics import outlier_auc, principal_angles
from studies import _real_page as page
from studies._real_files import read_arrays
from studies._real_references import (
    principal_axes,
    residuals,
    reweighted_pca,
    spherical_pca,
    unit_rows,
)

SHARES = (0.3, 0.5, 0.7)  # of other people's images
GIVEN = 9  # dimensions of a face, for methods that need them
SUBJECTS = (1, 6, 11, 16, 21, 26)


def run(case: Case) -> Tables:
    """Fit all methods to one person's images among others'."""
    from perpend import DPCP

    subject, share, seed = case["subject"], case["share"], case["seed"]
    images, who = read_arrays(case["path"], "images", "subject")
    X, y = _mixed(images.astype(float), who == subject, share, [seed, subject, round(100 * share)])
    truth = principal_axes(unit_rows(X[y == 1]), GIVEN)
    model, seconds = fitted(DPCP(random_state=starts_rng(seed)), X)
    rows = [
        {
            "method": page.OURS,
            "codimension": int(model.codimension_),
            "confidence": float(model.confidence_),
            **_row(X, y, model.components_, truth, seconds),
        }
    ]
    for name, method in {"spherical PCA": spherical_pca, "reweighted PCA": reweighted_pca}.items():
        began = time.process_time()
        basis = method(X, GIVEN)
        seconds = time.process_time() - began
        rows.append(
            {
                "method": f"{name}, given d = {GIVEN}",
                "codimension": X.shape[1] - GIVEN,
                "confidence": None,
                **_row(X, y, basis, truth, seconds),
            }
        )
    given = {"subject": subject, "share": share, "seed": seed}
    return {"faces": [{**given, **row} for row in rows]}


def _mixed(images: Array, own: Array, share: float, seed: list[int]) -> tuple[Array, Array]:
    """Return one person's images and as many of others' as make the share; +1 and -1."""
    n_own = int(own.sum())
    n_others = round(share / (1 - share) * n_own)
    others = np.random.default_rng(seed).choice(np.flatnonzero(~own), n_others, replace=False)
    X = np.vstack([images[own], images[others]])
    return X, np.repeat([1, -1], [n_own, n_others])


def _row(X: Array, y: Array, basis: Array, truth: Array, seconds: float) -> Row:
    """Return AUC of the relative distance and the largest angle to the person's own subspace.

    Of two subspaces of different dimension, the smaller one has all the angles.
    """
    unit = unit_rows(X)
    angle = principal_angles(basis, truth)[0] if len(basis) else np.pi / 2
    return {
        "dimension": len(basis),
        "auc": outlier_auc(y, -residuals(unit, basis)),
        "angle": float(np.rad2deg(angle)),
        "seconds": seconds,
    }


# -- looking at the results --------------------------------------------------------------------


def draw(results: Results) -> dict[str, Any]:
    """Draw AUC at each share of other people's images."""
    from perpend import plots

    panels = {
        f"{percent(share)} of others": {
            method: page.numbers(results, "faces", "auc", share=share, method=method)
            for method in results.values("faces", "method")
        }
        for share in results.values("faces", "share")
    }
    return {"faces": plots.dots(panels, xlabel="AUC, one dot a person", highlight=page.OURS)}


def numbers(results: Results) -> dict[str, Any]:
    """Return how many people there are, and what the others are given."""
    return {"people": len(results.values("faces", "subject")), "given": GIVEN}
