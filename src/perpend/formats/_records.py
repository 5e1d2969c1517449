"""From an array to a dataset, and from labels back to the places of the records."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._checks import check_memory, quoted
from perpend.formats._dataset import Answer, Counts, Dataset, Kind

BLOCK = 1 << 22  # bytes of rows that are checked together
LISTED = 20  # names of columns in a message
NO_DATA = 255  # in a mask of bytes


class Survey(NamedTuple):
    """Which rows are finite, and how many are zero."""

    finite: Array  # (n,) bool: no NaN and no infinity
    zero: int  # rows of nothing but zeros


def survey(X: Array) -> Survey:
    """Check all rows, a block at a time."""
    finite = np.empty(len(X), bool)
    zero = 0
    step = max(1, BLOCK // max(1, X.shape[1] * X.itemsize))
    for begin in range(0, len(X), step):
        block = X[begin : begin + step]
        finite[begin : begin + step] = np.isfinite(block).all(axis=1)
        with np.errstate(invalid="ignore"):  # signalling NaN
            zero += int(np.count_nonzero(~block.any(axis=1)))
    return Survey(finite, zero)


def from_array(
    values: Array,
    path: Path,
    name: str,
    *,
    stored_dtype: str,
    wanted: tuple[str, ...] | None = None,
    origin: Any = None,
) -> Dataset:
    """Dataset of an array of floats: 2 dimensions are a table, 3 an image.

    Parameters
    ----------
    values : array
        float32 or float64.
    path : Path
        The file.
    name : str
        Name of the format.
    stored_dtype : str
        As in the file.
    wanted : tuple of str, optional
        Numbers of the columns or bands to take, from 1.
    origin : object
        For the format's writer.
    """
    shape = values.shape[:-1]
    if not (values.flags.c_contiguous or values.ndim == 2):
        check_memory(str(path), values.nbytes)
    X = values.reshape(-1, values.shape[-1])
    columns = None
    if wanted is not None:
        names = [str(j + 1) for j in range(X.shape[1])]
        X, columns = X[:, select(path, wanted, names)], wanted
    more: dict[str, Any] = {"stored_dtype": stored_dtype, "origin": origin}
    if len(shape) == 1:
        return from_table(X, path, name, columns, **more)
    return finite_only(X, path, name, "image", shape=shape, columns=columns, **more)


def finite_only(
    X: Array,
    path: Path,
    name: str,
    kind: Kind,
    *,
    shape: tuple[int, ...],
    columns: tuple[str, ...] | None,
    **more: Any,
) -> Dataset:
    """Dataset of the pixels or points without NaN and infinities; the others are counted."""
    finite, zero = survey(X)
    counts = Counts(nan=int(np.count_nonzero(~finite)), zero=zero)
    positions = None
    if counts.nan == len(X):
        advice = " Leave out bad bands." if kind == "image" else ""
        what = "pixels" if kind == "image" else "points"
        raise InputError(f"{path}: all of its {len(X)} {what} have a NaN or an infinity.{advice}")
    if counts.nan:
        positions = np.flatnonzero(finite)
        check_memory(str(path), len(positions) * X.shape[1] * X.itemsize)
        X = X[positions]
    return Dataset(X, str(path), name, kind, shape, columns, positions, counts=counts, **more)


def from_table(
    X: Array,
    path: Path,
    name: str,
    columns: tuple[str, ...] | None,
    *,
    stored_dtype: str,
    dropped: tuple[str, ...] = (),
    origin: Any = None,
) -> Dataset:
    """Dataset of a table; rows with missing values stay, and are counted."""
    finite, zero = survey(X)
    counts = Counts(int(np.count_nonzero(~finite)), 0, zero, dropped)
    return Dataset(
        X, str(path), name, "table", (len(X),), columns, None, stored_dtype, counts, origin
    )


def select(path: Path, wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Indices of the wanted columns.

    Raises
    ------
    InputError
        If a name is missing, or occurs twice.
    """
    if not wanted:
        raise InputError(f"{path}: no columns were chosen. Name at least one.")
    places: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        places.setdefault(name, []).append(j)
    for name in wanted:
        if name not in places:
            more = f" and {len(places) - LISTED} more" if len(places) > LISTED else ""
            there = ", ".join(map(quoted, list(places)[:LISTED])) + more
            raise InputError(f"{path}: has no column {quoted(name)}. Its columns: {there}.")
        if len(places[name]) > 1:
            raise InputError(
                f"{path}: has {len(places[name])} columns {quoted(name)}. Rename them."
            )
    return [places[name][0] for name in wanted]


def without_missing(dataset: Dataset, drop: str) -> Dataset:
    """See :func:`perpend.formats.without_missing`."""
    if drop not in ("rows", "columns"):
        raise ValueError(f"drop={drop!r} is neither 'rows' nor 'columns'.")
    X, counts = dataset.X, dataset.counts
    axis = 1 if drop == "rows" else 0
    keep = np.flatnonzero(np.isfinite(X).all(axis=axis))
    if len(keep) == X.shape[1 - axis]:
        return dataset
    if len(keep) == 0:
        other = "columns" if drop == "rows" else "rows"
        raise InputError(
            f"{dataset.source}: all {drop} have a NaN or an infinity, so none would be left. "
            f"Drop {other} instead, or fill the gaps."
        )
    if drop == "rows":
        before = np.arange(len(X)) if dataset.positions is None else dataset.positions
        return replace(dataset, X=X[keep], positions=before[keep])
    names = dataset.columns or tuple(str(j + 1) for j in range(X.shape[1]))
    lost = tuple(name for j, name in enumerate(names) if j not in set(keep.tolist()))
    return replace(
        dataset,
        X=X[:, keep],
        columns=tuple(names[j] for j in keep),
        counts=counts._replace(dropped_columns=(*counts.dropped_columns, *lost)),
    )


def in_place(dataset: Dataset, values: Array, missing: float) -> Array:
    """Put one value for each row at the place of its record, and `missing` elsewhere."""
    full = np.full(math.prod(dataset.shape), missing, dtype=values.dtype)
    full[slice(None) if dataset.positions is None else dataset.positions] = values
    return full.reshape(dataset.shape)


def added_values(dataset: Dataset, answer: Answer, taken: Sequence[str] = ()) -> dict[str, Array]:
    """Distance, probability and inlier for each record, by names that are not `taken`."""
    inlier = np.asarray(np.asarray(answer.labels) == 1, np.uint8)
    values = {
        "distance": in_place(dataset, np.asarray(answer.distance, float), math.nan),
        "probability": in_place(dataset, np.asarray(answer.probability, float), math.nan),
        "inlier": in_place(dataset, inlier, NO_DATA),
    }
    return {_free(name, taken): array for name, array in values.items()}


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"perpend_{name}"
    return name
