"""The content of ``result.json``: everything about a result but the rows themselves."""

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from perpend import __version__
from perpend.cli._input import Source
from perpend.cli._output import input_sha256
from perpend.cli._summary import is_sure

if TYPE_CHECKING:
    from perpend._typing import Array
    from perpend.estimator import SubspaceEstimator
    from perpend.formats import Answer, Dataset

SCHEMA = 2  # 1: before formats other than tables


def describe_fit(
    model: "SubspaceEstimator", data: "Dataset", source: Source, warnings: list[str]
) -> dict[str, Any]:
    """Return the content of result.json after a fit, except times and checksums."""
    parameters = model.get_params(deep=False)
    del parameters["callback"]
    return {
        **_described("fit", model, data, source, model.labels_),
        "parameters": parameters,
        "seed": model.random_state,
        "evidence": model.evidence_,
        "noise": model.noise_,
        "structures": model.structures_,
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
    return {**_described("apply", model, data, source, answer.labels), "warnings": warnings}


def _described(
    command: str, model: "SubspaceEstimator", data: "Dataset", source: Source, labels: "Array"
) -> dict[str, Any]:
    """Return what a fit and new rows have in common."""
    outliers = int((labels == -1).sum())
    return {
        **preamble(command, SCHEMA),
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
        "outlier_share": outliers / len(labels),
    }


def describe_input(data: "Dataset", source: Source) -> dict[str, Any]:
    """Return what was read, with its checksum."""
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
    """Say in which unit the distances are."""
    if model.normalize and not model.affine_:
        return "relative: sine of the angle to the subspace"
    return "Euclidean: in the units of the data"


def preamble(command: str, schema: int) -> dict[str, Any]:
    """Return the command, and the versions that computed the result."""
    packages = ("numpy", "scipy", "scikit-learn")
    versions = {"python": platform.python_version(), **{name: version(name) for name in packages}}
    return {
        "schema_version": schema,
        "command": command,
        "perpend": __version__,
        "versions": versions,
    }
