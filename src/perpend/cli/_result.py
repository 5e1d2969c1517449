"""What ``result.json`` says: everything about an answer but the rows themselves."""

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from perpend import __version__
from perpend.cli._input import Source
from perpend.cli._output import input_sha256
from perpend.cli._summary import is_sure

if TYPE_CHECKING:
    from perpend.estimator import SubspaceEstimator
    from perpend.formats import Answer, Dataset

SCHEMA = 2  # 1: before formats other than tables


def describe_fit(
    model: "SubspaceEstimator", data: "Dataset", source: Source, warnings: list[str]
) -> dict[str, Any]:
    """Return the content of result.json after a fit, except times and checksums."""
    parameters = model.get_params(deep=False)
    del parameters["callback"]
    outliers = int((model.labels_ == -1).sum())
    return {
        **_preamble("fit"),
        "method": type(model).__name__,
        "parameters": parameters,
        "seed": model.random_state,
        "input": describe_input(data, source),
        "codimension": model.codimension_,
        "dimension": model.n_components_,
        "affine": model.affine_,
        "confidence": model.confidence_,
        "sure": is_sure(model),
        "evidence": model.evidence_,
        "threshold": model.threshold_,
        "distance": distance_unit(model),
        "noise": model.noise_,
        "structures": model.structures_,
        "outliers": outliers,
        "outlier_share": outliers / len(model.labels_),
        "converged": model.converged_,
        "n_iter": model.n_iter_,
        "n_starts": model.n_starts_,
        "warnings": warnings,
    }


def describe_labels(
    model: "SubspaceEstimator",
    data: "Dataset",
    source: Source,
    answer: "Answer",
    warnings: list[str],
) -> dict[str, Any]:
    """Return the content of result.json after new rows were labelled by a saved model."""
    outliers = int((answer.labels == -1).sum())
    return {
        **_preamble("apply"),
        "method": type(model).__name__,
        "input": describe_input(data, source),
        "codimension": model.codimension_,
        "dimension": model.n_components_,
        "affine": model.affine_,
        "confidence": model.confidence_,
        "sure": is_sure(model),
        "threshold": model.threshold_,
        "distance": distance_unit(model),
        "outliers": outliers,
        "outlier_share": outliers / len(answer.labels),
        "warnings": warnings,
    }


def describe_input(data: "Dataset", source: Source) -> dict[str, Any]:
    """Return what was read, and how to recognise it."""
    counts = data.counts
    return {
        "name": source.name if source.is_stdin else source.path.name,
        "format": data.format,
        "kind": data.kind,
        "shape": data.X.shape,
        "records": data.shape,
        "columns": data.columns,
        "dtype": str(data.X.dtype),
        "stored_dtype": data.stored_dtype,
        "counts": counts._asdict(),
        "sha256": input_sha256(source),
    }


def distance_unit(model: "SubspaceEstimator") -> str:
    """Say what the distances are that decide the labels."""
    if model.normalize and not model.affine_:
        return "relative: sine of the angle to the subspace"
    return "Euclidean: in the units of the data"


def versions() -> dict[str, str]:
    """Return what computed the answer."""
    packages = ("numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def _preamble(command: str) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA,
        "command": command,
        "perpend": __version__,
        "versions": versions(),
    }
