"""The strongest outliers, and the columns that make each of them one."""

import numpy as np

from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.formats._dataset import Answer, Dataset
from perpend.report._words import Facts
from perpend.rows.kinds import to_numpy

TABLE_ROWS = 50
BLAMED = 3  # columns for each row
WORTH_NAMING = 0.1  # a column is named from this share of the squared distance on
RANGE_SLACK = 0.1  # of the inliers' range: a value this far outside is still like theirs


def outlier_facts(
    model: SubspaceEstimator, X: Array | None, answer: Answer | None, dataset: Dataset | None
) -> Facts | None:
    """Return the outliers that are farthest away; None if the distances are unknown."""
    if answer is None:
        return None
    labels, distance = to_numpy(answer.labels), to_numpy(answer.distance)
    probability = to_numpy(answer.probability)
    outliers = np.flatnonzero(labels == -1)
    order = outliers[np.argsort(-distance[outliers], kind="stable")][:TABLE_ROWS]
    blames: list[list[Facts]] = [[] for _ in order]
    if X is not None and len(order):
        single = model.codimension_ == 1
        blames = _nearest(model, X, order, labels) if single else _blames(model, X, order)
    positions = None if dataset is None else dataset.positions
    records = order if positions is None else to_numpy(positions)[order]
    width = dataset.shape[1] if dataset is not None and len(dataset.shape) == 2 else None
    in_space = dataset is not None and dataset.kind == "cloud" and X is not None
    rows = [
        {
            "row": int(record),  # among the records of the file, from 0
            "pixel": None if width is None else [int(record) // width, int(record) % width],
            "place": [float(v) for v in X[i, :3]] if in_space and X is not None else None,
            "distance": float(distance[i]),
            "probability": None if np.isnan(probability[i]) else float(probability[i]),
            "blame": blame,
        }
        for i, record, blame in zip(order, records, blames, strict=True)
    ]
    return {"rows": rows, "total": len(outliers)}


def _blames(model: SubspaceEstimator, X: Array, order: Array) -> list[list[Facts]]:
    """Return the columns with the largest shares of each row, and the values that would fit.

    With P the projector on the normals and e = P x - N.T b the residual, changing column j alone
    brings the row nearest at x_j - e_j / P_jj. A column is not blamed if that value is far outside
    its range: noise gives even an irrelevant column a tiny coefficient.
    """
    N = to_numpy(model.normals_).astype(float)
    low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
    margin = high - low
    X = X[order]
    shares = to_numpy(model.explain(X))
    X = X.astype(float)
    residual = (X @ N.T - to_numpy(model.intercept_).astype(float)) @ N  # (n, D)
    own = np.sum(np.square(N), axis=0)  # P_jj
    fits = X - residual / np.maximum(own, np.finfo(float).tiny)
    likely = (own > 0) & (fits >= low - margin) & (fits <= high + margin)
    shares = np.where(likely, shares, 0.0)
    best = np.argsort(-shares, axis=1, kind="stable")[:, :BLAMED]
    return [
        [_blame(j, share[j], x[j], fit[j]) for j in columns if share[j] >= WORTH_NAMING]
        for columns, share, x, fit in zip(best, shares, X, fits, strict=True)
    ]


def _nearest(model: SubspaceEstimator, X: Array, order: Array, labels: Array) -> list[list[Facts]]:
    """Return the columns that would have to move least to bring each row to a hyperplane.

    Any column that the normal n uses can make up for the distance, by x_j - (n @ x - b) / n_j. So
    the columns are ranked by how far they move, in units of their own spread among the inliers, and
    a column is named only if its new value is like the inliers'.
    """
    n = to_numpy(model.normals_).astype(float)[0]
    unit = max(float(np.max(np.abs(X))), np.finfo(float).tiny)  # so that nothing overflows
    inliers = (X[labels == 1] if np.any(labels == 1) else X).astype(float) / unit
    rows = X[order].astype(float) / unit
    spread, low, high = np.std(inliers, axis=0), inliers.min(axis=0), inliers.max(axis=0)
    slack = RANGE_SLACK * (high - low)
    residual = rows @ n - float(to_numpy(model.intercept_)[0]) / unit
    used, varies = np.abs(n) > np.finfo(float).eps, spread > np.finfo(float).eps
    fits = rows - residual[:, None] / np.where(used, n, 1.0)
    likely = used & (fits >= low - slack) & (fits <= high + slack)
    # A column that is the same in all inliers has no spread; any move from it counts as the least.
    moves = np.where(varies, np.abs(rows - fits) / np.where(varies, spread, 1.0), 0.0)
    ranked = np.argsort(np.where(likely, moves, np.inf), axis=1, kind="stable")[:, :BLAMED]
    return [
        [
            _blame(j, 1.0, unit * rows[i, j], unit * fits[i, j])
            | {"moves": float(moves[i, j]) if varies[j] else None}
            for j in columns
            if likely[i, j]
        ]
        for i, columns in enumerate(ranked)
    ]


def _blame(column: int, share: float, value: float, fits: float) -> Facts:
    """Return one column of one row, with its share of the squared distance.

    `fits` is the value that fits the other columns best.
    """
    numbers = {"share": float(share), "value": float(value), "fits": float(fits)}
    return {"column": int(column), **numbers}
