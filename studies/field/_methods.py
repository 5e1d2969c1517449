"""Every method, what it is given, and how its estimate is measured."""

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from perpend._typing import Array
from perpend.comparison import PCABaseline
from perpend.experiments._experiment import Row
from perpend.experiments._trials import RECOVERED
from studies.field._problems import Problem

OURS, GIVEN, PCA, DICTIONARY = "DPCP()", "DPCP, given d", "PCA", "OrthogonalDictionary"
CHOOSES, NEEDS, LABELS, ATOMS = "nothing", "d", "labels only", "dictionaries only"
SPHERISED = {"REAPER": "S-REAPER"}  # on unit rows, as all methods but PCA and REAPER by default
AS_GOOD = 2.0  # an estimate is recovered with up to so many times the error of the inliers' own PCA
AT_MOST = 0.5  # but not beyond 30 degrees
# DPCP-LP solves some linear programs for each of c normals; one fit takes about 1 s at c n = 2000.
ONCE = 1500  # from there on only in the first trial of a cell
COSTLY = "too costly"


class Model(Protocol):
    """What the study needs of a method."""

    def fit(self, X: Array) -> Any:
        """Fit to the rows."""
        ...


class Entry(NamedTuple):
    """A method: what it is given, and how it is made for a problem and a seed."""

    given: str
    make: Callable[[Problem, int], Model]


def entries() -> dict[str, Entry]:
    """Return all methods in the registry, PCA, and what is for dictionaries."""
    import perpend
    from perpend import _LABELS_ONLY, _METHODS

    def made(name: str, given: str, **options: Any) -> Entry:
        cls = getattr(perpend, name)

        def make(problem: Problem, seed: int) -> Model:
            more: dict[str, Any] = {"codimension": problem.codimension} if given == NEEDS else {}
            if name == "RANSACPlus":  # the share of outliers is one of its parameters
                more["outlier_share"] = min(problem.share, 0.49)
            if name == "OutlierPursuit":  # its weight needs the share, as in its paper
                more["contamination"] = problem.share
            if "random_state" in cls().get_params():
                more["random_state"] = seed
            model: Model = cls(**more, **options)
            return model

        return Entry(given, make)

    found = {OURS: made("DPCP", CHOOSES), GIVEN: made("DPCP", NEEDS)}
    for name in _METHODS:
        needs = getattr(perpend, name).capabilities.needs_dimension
        if name != "DPCP":
            found[SPHERISED.get(name, name)] = made(name, NEEDS if needs else CHOOSES)
    found["REAPER"] = made("REAPER", NEEDS, normalize=False)
    found[PCA] = Entry(NEEDS, lambda problem, _: PCABaseline(problem.codimension, affine=True))
    found |= {name: made(name, LABELS) for name in _LABELS_ONLY}
    return found | {DICTIONARY: made(DICTIONARY, ATOMS)}


def too_costly(name: str, c: int, n: int, trial: int) -> bool:
    """Whether a fit is left out, and shown as such."""
    return name == "DPCPLP" and c * n > ONCE and trial > 0


def measured(problem: Problem, trial: int, seed: int) -> list[Row]:
    """Fit every method, and return how far each estimate is from the truth."""
    c, (n, D) = problem.codimension, problem.X.shape
    limit = RECOVERED
    if not problem.dictionary:
        oracle = problem.error(axes_normals(problem.X[problem.y == 1], D - c))
        limit = min(max(RECOVERED, AS_GOOD * oracle), AT_MOST)
    rows = []
    for name, entry in entries().items():
        if entry.given == ATOMS and not problem.dictionary:
            continue
        row: Row = dict.fromkeys(("codimension", "error", "auc", "seconds", "confidence"))
        row |= {"method": name, "limit": limit, "recovered": None, "note": ""}
        if too_costly(name, c, n, trial):
            row["note"] = COSTLY
        else:
            try:
                row |= _fitted(entry, problem, seed)
                row["recovered"] = row["error"] <= limit
            except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
                row |= {"recovered": False, "note": f"failed: {type(error).__name__}"}
        rows.append(row)
    return rows


def _fitted(entry: Entry, problem: Problem, seed: int) -> Row:
    """Return codimension, error, AUC and CPU time of one fit."""
    from perpend.metrics import outlier_auc

    X, y, d = problem.X, problem.y, problem.X.shape[1] - problem.codimension
    model: Any = entry.make(problem, seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    row: Row = {"seconds": time.process_time() - start}
    if entry.given == ATOMS:  # all of them must be there
        # sine of the angle of each atom to the nearest one found
        cosine = np.max(np.abs(problem.normals @ model.components_.T), axis=1, initial=0.0)
        error = float(np.sqrt(np.max(1 - np.minimum(cosine, 1) ** 2)))
        return row | {"codimension": len(model.components_), "error": error}
    if entry.given == LABELS:
        normals, scores = axes_normals(X[model.labels_ == 1], d), model.scores_
    else:
        normals = model.normals_
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        scores = -np.linalg.norm(unit @ normals.T, axis=1)
    return row | {
        "codimension": len(normals),
        "error": problem.error(normals),
        "auc": outlier_auc(y, scores) if np.any(y == -1) else None,
        "confidence": getattr(model, "confidence_", None),
    }


def axes_normals(X: Array, d: int) -> Array:
    """Return the complement (D - d, D) of the d main axes of rows, through the origin."""
    Vt: Array = np.linalg.svd(X, full_matrices=True)[2] if len(X) else np.eye(X.shape[1])
    return Vt[d:]
