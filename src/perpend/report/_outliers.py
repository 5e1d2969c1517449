"""The strongest outliers, and the columns that make each of them one."""

import numpy as np

from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.formats._dataset import Dataset, Labelled
from perpend.report._words import Facts
from perpend.rows.kinds import to_numpy

TABLE_ROWS = 50
BLAMED = 3  # columns for each row
WORTH_NAMING = 0.1  # a column is named from this share of the squared distance on
RANGE_SLACK = 0.1  # of the inliers' range: a value this far outside is still like theirs


def outlier_facts(
    model: SubspaceEstimator, X: Array | None, labelled: Labelled | None, dataset: Dataset | None
) -> Facts | None:
    """Return the outliers that are farthest away; None if the distances are unknown."""
    if labelled is None:
        return None
    labels, distance = to_numpy(labelled.labels), to_numpy(labelled.distance)
    probability = to_numpy(labelled.probability)
    outliers = np.flatnonzero(labels == -1)
    order = outliers[np.argsort(-distance[outliers], kind="stable")][:TABLE_ROWS]
    blames: list[list[Facts]] = [[] for _ in order]
    if X is not None and len(order):
        blames = _blames(model, X, order, labels)
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


def _blames(model: SubspaceEstimator, X: Array, order: Array, labels: Array) -> list[list[Facts]]:
    """Return the columns to blame for each row, and the values that would fit.

    With P the projector on the normals and e = P x - N.T b the residual, changing column j alone
    brings the row nearest at x_j - e_j / P_jj. A column is not blamed if that value is far outside
    its range: noise gives even an irrelevant column a tiny coefficient. Columns are ranked by the
    share of the squared distance that would vanish. With a single normal that is all of it for any
    column that the normal uses. Then they are ranked by how far they move, in units of their own
    spread among the inliers, and the new value must be like the inliers'.
    """
    tiny, eps, single = np.finfo(float).tiny, np.finfo(float).eps, model.codimension_ == 1
    unit = max(float(X.max()), -float(X.min()), tiny)  # so that nothing overflows
    N, b = to_numpy(model.normals_).astype(float), to_numpy(model.intercept_).astype(float) / unit
    rows = X[order].astype(float) / unit
    own = np.sum(np.square(N), axis=0)  # P_jj
    used = own > eps**2
    fits = rows - (rows @ N.T - b) @ N / np.where(used, own, 1.0)
    like = X[labels == 1] if single and np.any(labels == 1) else X
    low, high = (end(like, axis=0).astype(float) / unit for end in (np.min, np.max))
    slack = (RANGE_SLACK if single else 1.0) * (high - low)
    likely = used & (fits >= low - slack) & (fits <= high + slack)
    if single:
        spread = np.std(like.astype(float) / unit, axis=0)
        # A column that is the same in all inliers has no spread; any move from it counts as least.
        varies = spread > eps
        moves = np.where(varies, np.abs(rows - fits) / np.where(varies, spread, 1.0), 0.0)
        shares, rank = np.where(likely, 1.0, 0.0), np.where(likely, moves, np.inf)
    else:
        shares = np.where(likely, to_numpy(model.explain(X[order])), 0.0)
        rank = -shares

    def blame(i: int, j: int) -> Facts:
        values = {"value": float(X[order[i], j]), "fits": unit * float(fits[i, j])}
        move = {"moves": float(moves[i, j]) if varies[j] else None} if single else {}
        return {"column": int(j), "share": float(shares[i, j]), **values, **move}

    ranked = np.argsort(rank, axis=1, kind="stable")[:, :BLAMED]
    return [
        [blame(i, j) for j in columns if shares[i, j] >= WORTH_NAMING]
        for i, columns in enumerate(ranked)
    ]
