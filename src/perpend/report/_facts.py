"""The facts behind a page: plain numbers and texts, and nothing else.

`gather` reads a model and its rows once. The page only uses the facts, so it can be made again from
a file of them, without the model and the data.
"""

import datetime as dt
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
from sklearn.utils.validation import check_is_fitted

from perpend import __version__
from perpend._json import plain
from perpend._structures import relations
from perpend._typing import Array
from perpend._verdict import computed_evidence
from perpend.estimator import SubspaceEstimator
from perpend.exceptions import InputError
from perpend.formats._dataset import Answer, Dataset
from perpend.report._outliers import OutlierFacts, outlier_facts
from perpend.report._pictures import PictureFacts, Rows, picture_facts
from perpend.report._solved import MOST_EQUATIONS, Solved, solved_equations
from perpend.report._text import column_labels, nouns_of
from perpend.rows.kinds import to_numpy
from perpend.structure import SURE

SCHEMA = 2  # 1 had other pictures
MOST_NAMES = 2000  # of columns are kept


class DataFacts(TypedDict):
    """The rows."""

    name: str
    kind: str
    shape: list[int]  # of the records: (n,) or (height, width)
    n_rows: int
    n_columns: int
    columns: list[str]
    named: bool  # whether the data has names for its columns
    dtype: str
    sha256: str | None
    nan: int
    ignored: int
    zero: int
    dropped_columns: list[str]
    off_origin: float | None  # distance of the rows' centre from the origin, in radii of the rows


class StructureFacts(TypedDict):
    """A subspace in the rows."""

    codimension: int
    noise: float
    members: int
    chosen: bool
    relation: str  # to the chosen one


class EstimateFacts(TypedDict):
    """The subspace, and how it was estimated."""

    method: str
    dimension: int
    codimension: int
    given: bool  # whether the codimension was given
    affine: bool
    relative: bool  # whether distances are sines of angles
    confidence: float
    sure: bool
    outliers: int
    threshold: float
    threshold_from: str  # "auto", "given" or "contamination"
    noise: float
    converged: bool
    n_iter: int
    n_starts: int
    doubts: list[str]
    evidence: dict[str, Any]
    singular_values: list[float]
    normals: list[list[float]]  # the first few
    intercept: list[float]
    location: list[float]
    solved: NotRequired[list[Solved] | None]
    structures: list[StructureFacts]
    parameters: dict[str, str]
    seed: str


class Facts(TypedDict):
    """Everything that a page shows."""

    schema: int
    title: str
    made: str  # date and time
    data: DataFacts
    estimate: EstimateFacts
    outliers: OutlierFacts | None
    pictures: PictureFacts
    warnings: list[str]
    versions: dict[str, str]
    timings: dict[str, float]


def gather(
    model: SubspaceEstimator,
    data: Any = None,
    *,
    answer: Answer | None = None,
    result: dict[str, Any] | None = None,
    title: str | None = None,
) -> Facts:
    """Return the facts about a fitted model and its rows; see `perpend.report.write_report`."""
    check_is_fitted(model)
    result = result or {}
    rows = _rows(model, data)
    if answer is None and rows.X is not None:
        answer = _labelled(model, data.X if _is_read(data) else data)
    labels = to_numpy(model.labels_) if answer is None else to_numpy(answer.labels)
    if rows.X is not None and len(labels) != len(rows.X):
        raise InputError(f"There are {len(labels)} labels, but the data has {len(rows.X)} rows.")
    facts = _data_facts(model, rows, len(labels), result.get("input") or {})
    return Facts(
        schema=SCHEMA,
        title=title or facts["name"] or "Subspace report",
        made=dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        data=facts,
        estimate=_estimate_facts(model, rows.X, labels),
        outliers=outlier_facts(model, rows.X, answer, rows.dataset),
        pictures=picture_facts(model, rows, labels, answer),
        warnings=[str(text) for text in result.get("warnings") or []],
        versions=_versions(result),
        timings={str(k): float(v) for k, v in (result.get("timings") or {}).items()},
    )


def _is_read(data: Any) -> bool:
    """Whether the data came from a reader, with names and a source."""
    return isinstance(data, Dataset)


def _rows(model: SubspaceEstimator, data: Any) -> Rows:
    read = _is_read(data)
    X = None if data is None else np.asarray(to_numpy(data.X if read else data))
    D = model.n_features_in_
    if X is not None and (X.ndim != 2 or X.shape[1] != D):
        raise InputError(f"The data has shape {X.shape}; the model was fitted to {D} columns.")
    names = data.columns if read else None
    if names is None:
        names = getattr(model, "feature_names_in_", None)
    kind = data.kind if isinstance(data, Dataset) else "table"
    return Rows(
        X,
        columns=column_labels(range(1, D + 1) if names is None else names, kind),
        named=names is not None,
        dataset=data if isinstance(data, Dataset) else None,
        source=str(data.source) if read else "",
        word=nouns_of(kind, D).rows,
    )


def _labelled(model: SubspaceEstimator, X: Array) -> Answer:
    distance = -to_numpy(model.score_samples(X))
    labels = np.where(distance <= model.threshold_, 1, -1)
    if hasattr(model, "_outlier_odds"):
        probability = to_numpy(model.outlier_probability(X))
    else:  # a model from a file of an early version
        probability = np.full(len(labels), np.nan)
    return Answer(labels, distance, probability)


def _data_facts(
    model: SubspaceEstimator, rows: Rows, n: int, described: dict[str, Any]
) -> DataFacts:
    dataset = rows.dataset
    counts = dataset.counts if dataset is not None else None
    return DataFacts(
        name=Path(rows.source).name or str(described.get("name") or ""),
        kind=dataset.kind if dataset is not None else "table",
        shape=[int(m) for m in dataset.shape] if dataset is not None else [n],
        n_rows=n,
        n_columns=int(model.n_features_in_),
        columns=rows.columns[:MOST_NAMES],
        named=rows.named,
        dtype=str(rows.X.dtype) if rows.X is not None else str(described.get("dtype") or ""),
        sha256=str(described["sha256"]) if described.get("sha256") else None,
        nan=counts.nan if counts else 0,
        ignored=counts.ignored if counts else 0,
        zero=counts.zero if counts else 0,
        dropped_columns=[str(c) for c in counts.dropped_columns[:MOST_NAMES]] if counts else [],
        off_origin=None if rows.X is None else _off_origin(rows.X),
    )


def _off_origin(X: Array) -> float | None:
    """Return how far the centre of the rows is from the origin, in radii of their cloud.

    If most rows are equal, there is no radius, and this is None.
    """
    some = X[:: max(1, len(X) // 10_000)].astype(float)
    largest = float(np.max(np.abs(some)))
    if largest > 0:
        some /= largest  # the squares of very large floats are not finite
    centre = np.median(some, axis=0)
    radius = float(np.median(np.linalg.norm(some - centre, axis=1)))
    return float(np.linalg.norm(centre)) / radius if radius > np.finfo(float).eps else None


def _estimate_facts(model: SubspaceEstimator, X: Array | None, labels: Array) -> EstimateFacts:
    parameters = model.get_params(deep=False)
    parameters.pop("callback", None)
    seed = parameters.pop("random_state")
    threshold_from = "auto" if parameters["threshold"] == "auto" else "given"
    return EstimateFacts(
        method=type(model).__name__,
        dimension=int(model.n_components_),
        codimension=int(model.codimension_),
        given=parameters.get("codimension", "auto") != "auto"
        or parameters.get("n_components") is not None,
        affine=bool(model.affine_),
        relative=bool(model.normalize and not model.affine_),
        confidence=float(model.confidence_),
        sure=bool(model.confidence_ >= SURE),
        outliers=int((labels == -1).sum()),
        threshold=float(model.threshold_),
        threshold_from=threshold_from if parameters["contamination"] is None else "contamination",
        noise=float(model.noise_),
        converged=bool(model.converged_),
        n_iter=int(model.n_iter_),
        n_starts=int(model.n_starts_),
        doubts=[str(text) for text in getattr(model, "doubts_", ())],
        evidence={str(key): plain(value) for key, value in computed_evidence(model).items()},
        singular_values=plain(to_numpy(model.singular_values_)),
        normals=plain(to_numpy(model.normals_)[:MOST_EQUATIONS].astype(float)),
        intercept=plain(to_numpy(model.intercept_)[:MOST_EQUATIONS].astype(float)),
        location=plain(to_numpy(model.location_).astype(float)),
        solved=solved_equations(model, X, labels),
        structures=_structure_facts(model),
        parameters={key: _shown(value) for key, value in parameters.items()},
        seed=str(seed) if seed is None or isinstance(seed, int | np.integer) else "a generator",
    )


def _structure_facts(model: SubspaceEstimator) -> list[StructureFacts]:
    seen = getattr(model, "structures_", [])  # files of earlier versions have none
    return [
        StructureFacts(
            codimension=int(one["codimension"]),
            noise=float(one["noise"]),
            members=round(one["members"]),
            chosen=bool(one["chosen"]),
            relation=relation,
        )
        for one, relation in zip(seen, relations(model), strict=True)
    ]


def _shown(value: Any) -> str:
    if hasattr(value, "shape") and np.ndim(value):
        return f"an array of shape {tuple(value.shape)}"
    return str(value)


def _versions(result: dict[str, Any]) -> dict[str, str]:
    """Return the versions at the fit if the result has them, otherwise today's."""
    if result.get("versions"):
        return {"perpend": str(result.get("perpend", "")), **result["versions"]}
    here = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"perpend": __version__, "python": platform.python_version(), **here}
