"""The distances of all rows as a histogram, with what the two-group model expects in each bin."""

from typing import Any, TypedDict

import numpy as np
from scipy import special

from perpend._typing import Array
from perpend._verdict import computed_evidence
from perpend.estimator import SubspaceEstimator
from perpend.formats._dataset import Answer
from perpend.rows.kinds import to_numpy
from perpend.structure.labels import OutlierOdds, outlier_law, outlier_probability
from perpend.structure.law import distance_edges, two_groups

BINS = 160  # over all decades; zooming shows them wider
DECADES = 9.0  # below the largest distance: what is nearer is rounding, and goes into the first bin
N_NORMS = 256  # quantiles that stand for the norms of all rows


class DistanceFacts(TypedDict):
    """A histogram over log10 of the distance."""

    low: float  # log10 of the lower end of the first bin
    step: float  # width of a bin, in decades
    inliers: list[int]  # rows of each label in each bin
    outliers: list[int]
    below: int  # rows nearer than the first bin, counted in it
    probability: list[float] | None  # of an outlier, at the middle of each bin
    expected_inliers: list[float] | None  # by the model, in each bin
    expected_outliers: list[float] | None
    largest: float


def distance_facts(
    model: SubspaceEstimator, X: Array | None, answer: Answer | None
) -> DistanceFacts | None:
    """Return the histogram; None where the distances are unknown or all zero."""
    if answer is None or model.codimension_ == 0:
        return None
    distance = np.asarray(to_numpy(answer.distance), dtype=float)
    labels = to_numpy(answer.labels)
    seen = distance[distance > 0]
    if not len(seen):
        return None
    largest = float(seen.max())
    marks = np.append(seen, model.threshold_) if model.threshold_ > 0 else seen
    high = np.log10(max(largest, model.threshold_)) + 0.02
    low = max(np.log10(marks.min()) - 0.02, high - DECADES)
    edges = np.linspace(low, high, BINS + 1)
    place = np.log10(np.maximum(distance, 10.0**low))
    inliers = np.histogram(place[labels == 1], edges)[0]
    outliers = np.histogram(place[labels == -1], edges)[0]
    odds = getattr(model, "_outlier_odds", None)
    probability = None
    if odds is not None:
        middle = 10.0 ** ((edges[1:] + edges[:-1]) / 2)
        probability = outlier_probability(middle, OutlierOdds(**odds))
    expected = _expected(model, X, distance, 10.0**edges)
    return DistanceFacts(
        low=float(low),
        step=float(edges[1] - edges[0]),
        inliers=inliers.tolist(),
        outliers=outliers.tolist(),
        below=int((distance < 10.0**low).sum()),
        probability=None if probability is None else _rounded(probability),
        expected_inliers=None if expected is None else _rounded(expected[0]),
        expected_outliers=None if expected is None else _rounded(expected[1]),
        largest=largest,
    )


def _expected(
    model: SubspaceEstimator, X: Array | None, distance: Array, edges: Array
) -> tuple[Array, Array] | None:
    """Return how many rows of each group the two-group model expects in each bin.

    The model is fitted to these very distances: inliers have J^2 / s^2 ~ chi^2_c, outliers follow
    the law of directions without preference. An affine subspace sees its outliers from a centre of
    its own, so there nothing is drawn, and neither is where inliers are exact.
    """
    c, d = _inside(model)
    if model.affine_ or c < 1 or d < 1 or model.noise_ == 0:
        return None
    norms = np.ones(1)
    if not model.normalize:
        if X is None:
            return None
        norms = np.quantile(np.linalg.norm(X, axis=1), (np.arange(N_NORMS) + 0.5) / N_NORMS)
        norms = norms[norms > 0]
    bins = distance_edges(max(float(norms[-1]), float(distance.max())), np.float64)
    places = np.minimum(np.searchsorted(bins, distance), len(bins) - 1)
    groups = two_groups(np.bincount(places, minlength=len(bins)), bins, norms, c, d)
    n = len(distance)
    inliers = np.diff(special.gammainc(c / 2, np.square(edges / groups.scale) / 2))
    outliers = np.diff(outlier_law(edges, norms, c, d))
    return n * groups.share * inliers, n * (1 - groups.share) * outliers


def _inside(model: SubspaceEstimator) -> tuple[int, int]:
    """Return codimension and dimension inside the span of the rows."""
    spectrum: Any = computed_evidence(model).get("inlier_spectrum", ())
    rank = len(spectrum) or model.n_features_in_
    d = min(model.n_components_, rank)
    return rank - d, d


def _rounded(values: Array) -> list[float]:
    return [float(f"{value:.4g}") for value in values]
