"""Outliers in tables, beside the detectors of scikit-learn and PyOD.

Nobody promises that the ordinary rows of such a table lie near a subspace. Columns have units of
their own, so all methods get them standardised alike: as the documentation recommends, and, in a
second group, by mean and standard deviation.
"""

from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Settings, Tables
from perpend.experiments._trials import fitted, starts_rng
from perpend.metrics import outlier_auc
from studies.boards import _board as base
from studies.boards._files import files, read_arrays
from studies.boards._peers import detectors, row_of

OPTIONS: dict[str, Any] = {"affine": True, "outliers": "both"}  # as docs/domains/table.md has it
OWN = 'DPCP(affine=True, outliers="both")'
MOST = 5000  # rows, drawn with seed 0
LEAD = 0.005  # of mean AUC, before all others
ROBUST, PLAIN = "RobustStandardizer", "StandardScaler"
PEERS = ("IForest", "MCD", "ECOD", "COPOD", "KNN", "PCA", "LOF")


def items(settings: Settings) -> list[Case]:
    """Return every table, scaled in one way or the other."""
    rows = 500 if settings.quick else MOST
    ways = {ROBUST: 5} if settings.quick else {ROBUST: 5, PLAIN: 1}  # seeds
    return [
        {**file, "scaling": way, "rows": rows, "seeds": seeds}
        for way, seeds in ways.items()
        for file in files("tables")
    ]


def targets(board: base.Board, results: Results) -> list[base.Target]:
    """First among all, by some."""
    best = max(board.value(results, "auc", peer, ROBUST) for peer in PEERS)
    missing = any(np.isnan(board.value(results, "auc", peer, ROBUST)) for peer in PEERS)
    goal = np.nan if missing else best + LEAD
    what = f"mean AUC at least {LEAD} above every peer"
    return [base.Target(what, board.value(results, "auc", group=ROBUST), goal)]


BOARD = base.Board(
    name="boards/tables",
    title="Outliers in tables",
    about="24 tables of ADBench, beside detectors of scikit-learn and PyOD",
    own=OWN,
    item="table",
    measures=(base.Measure("auc", "AUC"),),
    targets=targets,
    items=items,
    sources=("tables",),
)


def run(case: Case) -> Tables:
    """Score the rows of one table by every detector; those without chance only once."""
    from perpend import DPCP

    X, anomaly = drawn(case["path"], case["rows"])
    X, seed = scaled(X, case["scaling"]), case["seed"]
    y = np.where(anomaly == 1, -1, 1)
    model, seconds = fitted(DPCP(**OPTIONS, random_state=starts_rng(seed)), X)
    rows = [{"method": OWN, "auc": outlier_auc(y, model.score_samples(X)), "seconds": seconds}]
    for name, score in detectors(X, seed).items():
        rows.append(row_of(name, score, lambda s: {"auc": outlier_auc(y, -np.nan_to_num(s))}))
    item = Path(case["path"]).stem.split("_")[1]
    given = {"group": case["scaling"], "item": item, "seed": seed}
    return {base.SCORES: BOARD.rows(given, rows)}


def drawn(path: str, most: int) -> tuple[Array, Array]:
    """Return the rows of a table, at most so many, and which of them are anomalies."""
    X, y = read_arrays(path, "X", "y")
    if len(X) > most:
        chosen = np.random.default_rng(0).choice(len(X), most, replace=False)
        X, y = X[chosen], y[chosen]
    return X.astype(float), y.ravel()


def scaled(X: Array, scaling: str) -> Array:
    """Return the columns in comparable units."""
    from sklearn.preprocessing import StandardScaler

    from perpend import RobustStandardizer

    scaler = RobustStandardizer() if scaling == ROBUST else StandardScaler()
    return np.asarray(scaler.fit_transform(X))


def numbers(results: Results) -> dict[str, Any]:
    """Return the numbers of the page."""
    return {**base.facts(BOARD, results), "ROBUST": ROBUST, "PLAIN": PLAIN, "most": MOST}


EXPERIMENT = BOARD.experiment(run, cost=lambda _: 2.0)
