"""The strongest outliers, and the columns that make each of them one."""

from typing import NotRequired, TypedDict

import numpy as np

from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.formats._dataset import Answer, Dataset
from perpend.rows.kinds import to_numpy

TABLE_ROWS = 50
BLAMED = 3  # columns for each row
WORTH_NAMING = 0.1  # a column is named from this share of the squared distance on
RANGE_SLACK = 0.1  # of the inliers' range: a value this far outside is still like theirs


class Blame(TypedDict):
    """One column of one row."""

    column: int
    share: float  # of the squared distance that would vanish with this column alone
    value: float
    fits: float  # the value that fits the other columns best
    moves: NotRequired[float | None]  # from one to the other, in spreads; with a single normal


class OutlierRow(TypedDict):
    """One row of the table."""

    row: int  # its number among the records of the file, from 0
    pixel: list[int] | None  # line and sample, if the data is an image
    place: NotRequired[list[float] | None]  # coordinates, if the data is a point cloud
    distance: float
    probability: float | None
    blame: list[Blame]


class OutlierFacts(TypedDict):
    """The table."""

    rows: list[OutlierRow]
    total: int


def outlier_facts(
    model: SubspaceEstimator, X: Array | None, answer: Answer | None, dataset: Dataset | None
) -> OutlierFacts | None:
    """Return the outliers that are farthest away; None if the distances are unknown."""
    if answer is None:
        return None
    labels, distance = to_numpy(answer.labels), to_numpy(answer.distance)
    probability = to_numpy(answer.probability)
    outliers = np.flatnonzero(labels == -1)
    order = outliers[np.argsort(-distance[outliers], kind="stable")][:TABLE_ROWS]
    blames: list[list[Blame]] = [[] for _ in order]
    if X is not None and len(order):
        single = model.codimension_ == 1
        blames = _nearest(model, X, order, labels) if single else _blames(model, X, order)
    rows = [
        OutlierRow(
            row=record,
            pixel=_pixel(dataset, record),
            place=_place(dataset, X, i),
            distance=float(distance[i]),
            probability=None if np.isnan(probability[i]) else float(probability[i]),
            blame=blame,
        )
        for i, record, blame in zip(order, _records(dataset, order), blames, strict=True)
    ]
    return OutlierFacts(rows=rows, total=len(outliers))


def _records(dataset: Dataset | None, rows: Array) -> list[int]:
    """Return the numbers of rows of X among the records of the file."""
    positions = None if dataset is None else dataset.positions
    return [int(i) for i in (rows if positions is None else to_numpy(positions)[rows])]


def _pixel(dataset: Dataset | None, record: int) -> list[int] | None:
    if dataset is None or len(dataset.shape) != 2:
        return None
    return [record // dataset.shape[1], record % dataset.shape[1]]


def _place(dataset: Dataset | None, X: Array | None, i: int) -> list[float] | None:
    if dataset is None or dataset.kind != "cloud" or X is None:
        return None
    return [float(v) for v in X[i, :3]]


def _blames(model: SubspaceEstimator, X: Array, order: Array) -> list[list[Blame]]:
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
        [
            Blame(column=int(j), share=float(share[j]), value=float(x[j]), fits=float(fit[j]))
            for j in columns
            if share[j] >= WORTH_NAMING
        ]
        for columns, share, x, fit in zip(best, shares, X, fits, strict=True)
    ]


def _nearest(model: SubspaceEstimator, X: Array, order: Array, labels: Array) -> list[list[Blame]]:
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
            Blame(
                column=int(j),
                share=1.0,
                value=unit * float(rows[i, j]),
                fits=unit * float(fits[i, j]),
                moves=float(moves[i, j]) if varies[j] else None,
            )
            for j in columns
            if likely[i, j]
        ]
        for i, columns in enumerate(ranked)
    ]
