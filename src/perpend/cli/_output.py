"""The files that ``perpend fit`` leaves behind: labels.csv, model.npz and result.json.

Each appears only when it is complete, and ``result.json``, written last, holds the checksums of the
others.
"""

import hashlib
import json
import math
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perpend.cli._console import Refusal
from perpend.cli._summary import is_sure

if TYPE_CHECKING:
    from perpend.estimator import SubspaceEstimator
    from perpend.formats import Dataset

SCHEMA = 1
LABELS, MODEL, RESULT = "labels.csv", "model.npz", "result.json"
CHUNK = 100_000  # rows of labels.csv written at a time


def check_folder(folder: Path, source: Path, *, force: bool) -> None:
    """Refuse a folder that cannot take the results, before any work is done."""
    existing = [name for name in (LABELS, MODEL, RESULT) if (folder / name).exists()]
    if existing and not force:
        raise Refusal(
            f"{folder}: already has {', '.join(existing)}. Use --force to replace them, or choose "
            "another folder."
        )
    if any(source.resolve() == (folder / name).resolve() for name in existing):
        raise Refusal(f"{folder}: the results would overwrite {source}. Choose another folder.")
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise Refusal(f"{nearest}: is a file, so there can be no folder. Choose another name.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied", str(nearest))


def write_results(folder: Path, model: "SubspaceEstimator", X: Any, result: dict[str, Any]) -> None:
    """Write all files; `result` gets the checksums of the first two."""
    from perpend.persistence import save, writing

    folder.mkdir(parents=True, exist_ok=True)
    distances = -model.score_samples(X)
    with writing(folder / LABELS) as stream:
        stream.write(b"row,distance,inlier\n")
        for begin in range(0, len(distances), CHUNK):
            stop = begin + CHUNK
            rows = zip(
                range(begin, stop),
                distances[begin:stop].tolist(),
                model.labels_[begin:stop].tolist(),
                strict=False,
            )
            lines = (f"{row},{distance!r},{int(label == 1)}\n" for row, distance, label in rows)
            stream.write("".join(lines).encode())
    save(model, folder / MODEL)
    result["files"] = {name: sha256(folder / name) for name in (LABELS, MODEL)}
    with writing(folder / RESULT) as stream:
        stream.write(as_json(result).encode() + b"\n")


def describe(model: "SubspaceEstimator", table: "Dataset", warnings: list[str]) -> dict[str, Any]:
    """Return the content of result.json, except times and checksums."""
    from perpend import __version__

    parameters = model.get_params(deep=False)
    del parameters["callback"]
    outliers = int((model.labels_ == -1).sum())
    return {
        "schema_version": SCHEMA,
        "perpend": __version__,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        },
        "method": type(model).__name__,
        "parameters": parameters,
        "seed": model.random_state,
        "input": {
            "name": Path(table.source).name,
            "shape": table.X.shape,
            "columns": table.columns,
            "dtype": str(table.X.dtype),
            "sha256": sha256(Path(table.source)),
        },
        "codimension": model.codimension_,
        "dimension": model.n_components_,
        "confidence": model.confidence_,
        "sure": is_sure(model),
        "evidence": model.evidence_,
        "threshold": model.threshold_,
        "distance": "relative: sine of the angle to the subspace"
        if model.normalize and not model.affine_
        else "Euclidean: in the units of the data",
        "noise": model.noise_,
        "outliers": outliers,
        "outlier_share": outliers / len(model.labels_),
        "converged": model.converged_,
        "n_iter": model.n_iter_,
        "n_starts": model.n_starts_,
        "warnings": warnings,
    }


def as_json(result: dict[str, Any]) -> str:
    """Return strict JSON; what is not a finite number becomes null."""
    return json.dumps(_plain(result), indent=2, allow_nan=False, ensure_ascii=False)


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _plain(value: Any) -> Any:
    """Turn arrays and NumPy's numbers into JSON's own."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
