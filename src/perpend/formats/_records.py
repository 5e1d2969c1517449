"""From an array to a dataset, and from labels back to the places of the records."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import listed, quoted
from perpend.formats._dataset import Answer, Counts, Dataset, Kind, Options

BLOCK = 1 << 22  # bytes of rows that are checked together
NO_DATA = 255  # in a mask of bytes


def from_array(
    values: Array, path: Path, options: Options, stored_dtype: object, origin: Any = None
) -> Dataset:
    """Dataset of an array: 2 dimensions are a table, 3 an image; columns are numbered from 1."""
    values = as_floats(values)
    if not (values.flags.c_contiguous or values.ndim == 2):
        check.memory(str(path), values.nbytes)
    X = values.reshape(-1, values.shape[-1])
    if options.columns is not None:
        X = X[:, select(path, options.columns, [str(j + 1) for j in range(X.shape[1])])]
    kind: Kind = "table" if values.ndim == 2 else "image"
    shape, columns, stored = values.shape[:-1], options.columns, str(stored_dtype)
    return from_records(
        X, path, options, kind, shape=shape, columns=columns, stored=stored, origin=origin
    )


def from_records(
    X: Array,
    path: Path,
    options: Options,
    kind: Kind,
    *,
    shape: tuple[int, ...] | None = None,
    columns: tuple[str, ...] | None,
    ignore: Array | None = None,
    masked: Array | None = None,
    dropped: tuple[str, ...] = (),
    stored: str,
    origin: Any = None,
) -> Dataset:
    """Dataset of all records of a file; pixels and points without data are left out and counted.

    They have no data if they are `masked`, have a NaN or an infinity, or if *every* band has its
    `ignore` value (NaN: it has none). If only some bands have it, the value may be a measurement
    (0 in a dark band), so the pixel stays and is counted as partly ignored; a robust method finds
    out whether it is an outlier. Rows of a table stay, and are only counted.
    """
    n, D = X.shape
    keep = np.ones(n, bool) if masked is None else ~masked
    nan = ignored = zero = partly = 0
    marks = None
    if ignore is not None and not np.isnan(ignore).all():
        with np.errstate(over="ignore"):  # 1e300 in a scene of float32 marks infinities
            marks = ignore.astype(X.dtype)
    step = max(1, BLOCK // max(1, D * X.itemsize))
    with np.errstate(invalid="ignore"):  # signalling NaN, which damaged files have
        for begin in range(0, n, step):
            block, kept = X[begin : begin + step], keep[begin : begin + step]
            finite = np.isfinite(block).all(axis=1)
            if marks is not None:
                hits = block == marks
                every = hits.all(axis=1)
                partly += int(np.count_nonzero(hits.any(axis=1) & ~every))
                kept &= ~every
            ignored += int(np.count_nonzero(~kept))
            nan += int(np.count_nonzero(~finite))
            zero += int(np.count_nonzero(~block.any(axis=1)))
            kept &= finite
    positions = None
    if kind != "table" and not keep.all():
        positions = np.flatnonzero(keep)
        if len(positions) == 0:
            raise _no_data(path, kind, n, ignored, nan)
        check.memory(str(path), len(positions) * D * X.itemsize)
        X = X[positions]
    counts, shape = Counts(nan, ignored, zero, dropped, partly), shape or (n,)
    source, name = str(path), options.format
    return Dataset(X, source, name, kind, shape, columns, positions, stored, counts, origin)


def _no_data(path: Path, kind: Kind, n: int, ignored: int, nan: int) -> InputError:
    """Say why no pixel or point is left."""
    if not ignored:
        what, advice = ("points", "") if kind == "cloud" else ("pixels", " Leave out bad bands.")
        return InputError(f"{path}: all of its {n} {what} have a NaN or an infinity.{advice}")
    return InputError(
        f"{path}: no pixel has data: {ignored} of {n} are marked as no data, {nan} have a "
        "NaN or an infinity. Check the ignore value, and leave out bad bands."
    )


def select(path: Path, wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Indices of the wanted columns, each of which must be there once."""
    if not wanted:
        raise InputError(f"{path}: no columns were chosen. Name at least one.")
    places: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        places.setdefault(name, []).append(j)
    for name in wanted:
        if name not in places:
            there = listed([quoted(other) for other in places])
            raise InputError(f"{path}: has no column {quoted(name)}. Its columns: {there}.")
        if len(places[name]) > 1:
            raise InputError(
                f"{path}: has {len(places[name])} columns {quoted(name)}. Rename them."
            )
    return [places[name][0] for name in wanted]


def added_values(dataset: Dataset, answer: Answer, taken: Sequence[str] = ()) -> dict[str, Array]:
    """Distance, probability and inlier for each record, by names that are not `taken`."""
    inlier = np.asarray(np.asarray(answer.labels) == 1, np.uint8)
    columns = {
        "distance": (np.asarray(answer.distance, float), math.nan),
        "probability": (np.asarray(answer.probability, float), math.nan),
        "inlier": (inlier, NO_DATA),
    }
    added = {}
    for name, (values, missing) in columns.items():
        full = np.full(math.prod(dataset.shape), missing, dtype=values.dtype)
        full[slice(None) if dataset.positions is None else dataset.positions] = values
        free = name
        while free in taken:
            free = f"perpend_{free}"
        added[free] = full.reshape(dataset.shape)
    return added


def float_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Bytes of an array as it is stored, and as floats if it is converted.

    >>> float_bytes((10, 2), np.dtype("f4")), float_bytes((10, 2), np.dtype("i2"))
    (80, 200)
    """
    n = math.prod(shape)
    return n * dtype.itemsize + (0 if dtype in (np.float32, np.float64) else 8 * n)


def as_floats(array: Array) -> Array:
    """Keep float32 and float64 as they are, turn all other numbers into float64."""
    if array.dtype in (np.float32, np.float64):  # false for a foreign byte order
        return array
    with np.errstate(over="ignore"):  # a long double may become inf, which validation reports
        return array.astype(np.float64)


def float_type(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """Return what values become: float32 if all are, in either byte order, otherwise float64."""
    is_single = all(dtype.newbyteorder("=") == np.float32 for dtype in dtypes)
    return np.dtype(np.float32 if is_single else np.float64)
