"""The files that ``perpend fit`` and ``perpend apply`` write.

All are written to a hidden folder inside the results folder first, and moved when every one of them
is complete. ``result.json``, which has the checksums of the others, comes last, and an earlier one
goes first: where it is, all results are there.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perpend import __version__
from perpend._files import draft_folder, write, writing
from perpend._json import plain
from perpend.cli._columns import left_out
from perpend.cli._console import Refusal
from perpend.cli._input import Source
from perpend.cli._summary import is_sure

if TYPE_CHECKING:
    from perpend._typing import Array
    from perpend.estimator import SubspaceEstimator
    from perpend.formats import Dataset, Labelled

LABELS, MODEL, RESULT = "labels.csv", "model.npz", "result.json"
REPORT, FACTS = "report.html", "report.json"  # the page, and what it is made from
SCHEMA = 2  # of result.json; 1: before formats other than tables
ROWS_AT_ONCE = 100_000  # of labels.csv


def check_folder(
    folder: Path,
    source: Path | None,
    names: list[str],
    *,
    force: bool,
    own: Set[str] = frozenset(),
) -> None:
    """Refuse a folder that cannot take these files, before any work is done.

    `source` is the input file, if there is one. The command's `own` files may be replaced.
    """
    try:
        status = folder.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, ValueError) as error:  # too long, a link to itself, a NUL character
        reason = getattr(error, "strerror", None) or error
        raise Refusal(f"{folder}: cannot be a folder ({reason}). Choose another name.") from error
    else:
        if stat.S_ISLNK(status.st_mode) and not folder.exists():
            raise Refusal(f"{folder}: is a broken link. Choose another name.")
    _check_names(folder, source, names, force=force, own=own)
    folders = [folder / name for name in names if (folder / name).is_dir()]
    if folders:
        raise Refusal(f"{folders[0]}: is a folder. Remove it, or choose another place.")
    check_place(folder)


def check_place(folder: Path) -> None:
    """Refuse a place where no folder can be made, or that is not writable."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise Refusal(f"{nearest}: is a file, so there can be no folder. Choose another name.")
    effective = os.access in os.supports_effective_ids
    if not os.access(nearest, os.W_OK | os.X_OK, effective_ids=effective):
        raise PermissionError(13, "Permission denied", str(nearest))


def _check_names(
    folder: Path, source: Path | None, names: list[str], *, force: bool, own: Set[str]
) -> None:
    """Overwrite results only if that is wanted, and the input never."""
    taken = [name for name in names if os.path.lexists(folder / name)]
    if (others := [name for name in taken if name not in own]) and not force:
        raise Refusal(
            f"{folder}: already has {', '.join(others)}. Use --force to replace them, or choose "
            "another folder."
        )
    if source and any(source.resolve() == (folder / name).resolve() for name in taken):
        raise Refusal(f"{folder}: the results would overwrite {source}. Choose another folder.")


@contextmanager
def staging(
    folder: Path,
    source: Path,
    *,
    force: bool,
    own: Set[str] = frozenset(),
    note: Callable[[list[str]], None] = lambda _: None,
) -> Iterator[Path]:
    """Yield a folder for the results; its files move to `folder` if all goes well.

    Before that, `note` gets their names.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    place = folder  # users do not know the draft by its name
    try:
        with draft_folder(folder) as draft:
            place = draft
            yield draft
            names = sorted((path.name for path in draft.iterdir()), key=lambda n: n == RESULT)
            _check_names(folder, source, names, force=force, own=own)
            note(names)
            if (folder / RESULT).exists():
                (folder / RESULT).replace(draft / f"earlier {RESULT}")
            for name in names:
                if (draft / name).is_dir() and (folder / name).is_dir():  # a Zarr of labels
                    (folder / name).replace(draft / f"earlier {name}")
                (draft / name).replace(folder / name)
    except OSError as error:
        where = str(error.filename or folder).replace(str(place), str(folder))
        raise OSError(error.errno, error.strerror or str(error), where) from error
    finally:
        for parent in missing:  # innermost first; those that are still empty
            with suppress(OSError):
                parent.rmdir()


def label_rows(model: "SubspaceEstimator", X: "Array", labels: "Array | None" = None) -> "Labelled":
    """Return labels, distances and probabilities; `labels` are known of the rows of the fit."""
    from perpend.formats import Labelled

    distance = -model.score_samples(X)
    return Labelled(
        model.predict(X) if labels is None else labels, distance, model.outlier_probability(X)
    )


def write_rows(folder: Path, data: "Dataset", labelled: "Labelled") -> None:
    """Write labels.csv, and the labels in the format of the file."""
    from perpend.formats import write_labelled

    places = range(len(labelled.labels)) if data.positions is None else data.positions
    write_labels(folder / LABELS, [(places, labelled)])
    write_labelled(data, labelled, folder)


def write_labels(path: Path, pieces: "Iterable[tuple[Sequence[int] | Array, Labelled]]") -> None:
    """Write labels.csv as the rows come: the number of each in the file, and its labels."""
    with writing(path) as stream:
        stream.write(b"row,distance,probability,inlier\n")
        for places, labelled in pieces:
            for begin in range(0, len(places), ROWS_AT_ONCE):
                part = slice(begin, begin + ROWS_AT_ONCE)
                rows = zip(
                    map(int, places[part]),
                    labelled.distance[part].tolist(),
                    labelled.probability[part].tolist(),
                    (labelled.labels[part] == 1).tolist(),
                    strict=True,
                )
                lines = (f"{row},{far!r},{odd!r},{int(good)}\n" for row, far, odd, good in rows)
                stream.write("".join(lines).encode())


def save_model(path: Path, model: Any, data: "Dataset") -> None:
    """Save a model or pipeline with the names of the columns, so that `apply` can check them."""
    import numpy as np
    from sklearn.pipeline import Pipeline

    from perpend.persistence import save

    if data.columns is None:
        save(model, path)
        return
    first = model[0] if isinstance(model, Pipeline) else model
    first.feature_names_in_ = np.array(data.columns, dtype=object)
    try:
        save(model, path)
    finally:
        del first.feature_names_in_  # or scikit-learn would expect names from now on


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Write result.json, with the checksums of all files beside it."""
    result["files"] = {path.name: sha256(path) for path in sorted(folder.iterdir())}
    text = json.dumps(plain(result), indent=2, allow_nan=False, ensure_ascii=False)
    write(folder / RESULT, f"{text}\n")


def sha256(path: Path) -> str:
    """Return the checksum of a file; of a folder, that of its files' names and contents."""
    import hashlib

    if not path.is_dir():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if file.is_file():
            digest.update(f"{file.relative_to(path).as_posix()}\0{sha256(file)}\n".encode())
    return digest.hexdigest()


# -- what result.json says: everything about a result but the rows themselves ----------------------


def describe_fit(
    model: "SubspaceEstimator", data: "Dataset", source: Source, scaler: Any
) -> dict[str, Any]:
    """Return the content of result.json after a fit, except warnings, times and checksums."""
    parameters = model.get_params(deep=False)
    del parameters["callback"]
    scaled, outliers = scaler is not None, int((model.labels_ == -1).sum())
    return {
        **describe_labels("fit", model, data, source, outliers, scaled=scaled),
        "standardize": {"center": scaler.center_, "scale": scaler.scale_} if scaled else None,
        "parameters": parameters,
        "seed": model.random_state,
        "evidence": model.evidence_,
        "noise": model.noise_,
        "structures": model.structures_,
        "missing": model.n_missing_,
        "undecided": model.undecided_,
        "converged": model.converged_,
        "n_iter": model.n_iter_,
        "n_starts": model.n_starts_,
    }


def describe_labels(
    command: str,
    model: "SubspaceEstimator",
    data: "Dataset",
    source: Source,
    outliers: int,
    *,
    scaled: bool,
) -> dict[str, Any]:
    """Return what is known of rows that a model has labelled, whether they were fitted or not."""
    relative = model.normalize and not model.affine_
    units = "standardised columns" if scaled else "the data"
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
        "distance": "robust deviations: off the subspace or within it"
        if model.outliers == "both"
        else f"relative: sine of the angle to the subspace{', of standardised columns' * scaled}"
        if relative
        else f"Euclidean: in the units of {units}",
        "outliers": outliers,
        "outlier_share": outliers / data.X.shape[0],
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
        "left_out": left_out(data),
        "sha256": sha256(source.path),
    }


def preamble(command: str, schema: int) -> dict[str, Any]:
    """Return the command, and the versions that computed the result."""
    import platform
    from importlib.metadata import version

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
