"""The outliers that every paper about robust PCA shows.

hbk: rows 1 to 10 are bad leverage points (11 to 14 are good ones). Octane: the spectra 25, 26 and
36 to 39 contain alcohol.
"""

from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.experiments._experiment import Case, Results, Row, Settings, Tables
from perpend.experiments._trials import fitted, starts_rng
from studies.boards import _board as base
from studies.boards._files import files
from studies.boards._peers import row_of
from studies.boards._references import mcd_flags, pca_flags, robpca_flags

OPTIONS: dict[str, Any] = {"affine": True, "outliers": "both"}
OWN = 'DPCP(affine=True, outliers="both")'
KNOWN = {"hbk": range(1, 11), "octane": (25, 26, 36, 37, 38, 39)}  # rows, from 1
GIVEN = {"hbk": 3, "octane": 2}  # components that ROBPCA and PCA are given, as published
OTHERS = 6


def items(settings: Settings) -> list[Case]:  # noqa: ARG001
    """Return the two tables."""
    return files("classics")


def targets(board: base.Board, results: Results) -> list[base.Target]:
    """All of them, and few others, with every seed."""
    rows = results.rows(base.SCORES, method=board.own)
    return [
        base.Target("known outliers missed, in the worst run", _worst(rows, "missed"), 0, -1),
        base.Target("other rows flagged, in the worst run", _worst(rows, "others"), OTHERS, -1),
    ]


def _worst(rows: list[Row], column: str) -> float:
    return max((row[column] for row in rows), default=np.nan)


BOARD = base.Board(
    name="boards/classics",
    title="The classics of robust PCA",
    about="hbk and octane, beside the MCD, ROBPCA, PCA and an isolation forest",
    own=OWN,
    item="table",
    measures=(
        base.Measure("f1", "F1 of the known outliers"),
        base.Measure("missed", "missed", -1, 1),
        base.Measure("others", "others flagged", -1, 1),
    ),
    targets=targets,
    items=items,
    sources=("classics",),
    seeds=5,
)


def run(case: Case) -> Tables:
    """Flag rows of one table by every method."""
    from sklearn.ensemble import IsolationForest

    from perpend import DPCP

    name, seed = Path(case["path"]).stem, case["seed"]
    X = np.genfromtxt(case["path"], delimiter=",", skip_header=1)[:, 1:]
    known = np.isin(np.arange(1, len(X) + 1), list(KNOWN[name]))
    model, seconds = fitted(DPCP(**OPTIONS, random_state=starts_rng(seed)), X)

    def measured(flagged: Array) -> Row:
        hits = int(np.sum(flagged & known))
        others = int(flagged.sum()) - hits
        f1 = 2 * hits / max(int(flagged.sum() + known.sum()), 1)
        which = " ".join(map(str, np.flatnonzero(flagged) + 1))
        return {"f1": f1, "missed": int(known.sum()) - hits, "others": others, "flagged": which}

    rows: list[Row] = [{"method": OWN, "seconds": seconds, **measured(model.labels_ == -1)}]
    k = GIVEN[name]
    peers = {
        "ROBPCA, given d": lambda: robpca_flags(X, k, seed),
        "IForest": lambda: IsolationForest(random_state=seed).fit(X).predict(X) == -1,
        "PCA, given d": lambda: pca_flags(X, k),
    }
    rows += [row_of(method, flags, measured) for method, flags in peers.items()]
    if len(X) > 2 * X.shape[1]:
        rows.append(row_of("MCD", lambda: mcd_flags(X, seed), measured))
    else:
        rows.append({"method": "MCD", "note": "needs more rows than columns"})
    given = {"item": name, "seed": seed, "flagged": ""}
    return {base.SCORES: BOARD.rows(given, rows)}


def numbers(results: Results) -> dict[str, Any]:
    """Return the numbers of the page."""
    return {
        **base.facts(BOARD, results),
        "flagged": {
            name: results.rows(base.SCORES, item=name, method=OWN)[0]["flagged"]
            for name in results.values(base.SCORES, "item")
        },
        "given": GIVEN,
    }


EXPERIMENT = BOARD.experiment(run)
