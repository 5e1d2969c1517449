"""The content of ``result.json``: everything about a result but the rows themselves."""

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from perpend import __version__
from perpend.cli._input import Source
from perpend.cli._output import sha256
from perpend.cli._summary import is_sure

if TYPE_CHECKING:
    from perpend._typing import Array
    from perpend.estimator import SubspaceEstimator
    from perpend.formats import Dataset

SCHEMA = 2  # 1: before formats other than tables


def describe_fit(model: "SubspaceEstimator", data: "Dataset", source: Source) -> dict[str, Any]:
    """Return the content of result.json after a fit, except warnings, times and checksums."""
    parameters = model.get_params(deep=False)
    del parameters["callback"]
    return {
        **describe_labels("fit", model, data, source, model.labels_),
        "parameters": parameters,
        "seed": model.random_state,
        "evidence": model.evidence_,
        "noise": model.noise_,
        "structures": model.structures_,
        "converged": model.converged_,
        "n_iter": model.n_iter_,
        "n_starts": model.n_starts_,
    }


def describe_labels(
    command: str, model: "SubspaceEstimator", data: "Dataset", source: Source, labels: "Array"
) -> dict[str, Any]:
    """Return what is known of rows that a model has labelled, whether they were fitted or not."""
    outliers = int((labels == -1).sum())
    relative = model.normalize and not model.affine_
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
        "distance": "relative: sine of the angle to the subspace"
        if relative
        else "Euclidean: in the units of the data",
        "outliers": outliers,
        "outlier_share": outliers / len(labels),
    }


def describe_input(data: "Dataset", source: Source) -> dict[str, Any]:
    """Return what was read, with its checksum."""
    return {
        "name": source.short_name,
        "format": data.format,
        "kind": data.kind,
        "shape": data.X.shape,
        "records": data.shape,
        "columns": data.columns,
        "dtype": str(data.X.dtype),
        "stored_dtype": data.stored_dtype,
        "counts": data.counts._asdict(),
        "sha256": sha256(source.path),
    }


def preamble(command: str, schema: int) -> dict[str, Any]:
    """Return the command, and the versions that computed the result."""
    packages = ("numpy", "scipy", "scikit-learn")
    return {
        "schema_version": schema,
        "command": command,
        "perpend": __version__,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
    }
