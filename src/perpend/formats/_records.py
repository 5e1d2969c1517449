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
    if options.transpose:
        check.transposable(path, values.ndim == 2)
        values = values.T
    if not (values.flags.c_contiguous or values.ndim == 2):
        check.memory(str(path), values.nbytes)
    X = values.reshape(-1, values.shape[-1])
    columns = None
    if options.columns is not None or options.exclude:
        chosen = select(path, options, [str(j + 1) for j in range(X.shape[1])])
        X, columns = X[:, chosen], tuple(str(j + 1) for j in chosen)
    kind: Kind = "table" if values.ndim == 2 else "image"
    shape, stored = values.shape[:-1], str(stored_dtype)
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


def select(
    path: Path, options: Options, names: Sequence[str], default: Sequence[int] | None = None
) -> list[int]:
    """Indices of the columns to take: the wanted ones or the default, without the excluded ones."""
    if options.columns is not None:
        chosen = _places(path, options.columns, names)
    else:
        chosen = list(range(len(names)) if default is None else default)
    excluded = set(_places(path, options.exclude, names) if options.exclude else ())
    kept = [j for j in chosen if j not in excluded]
    if not kept:
        what = "all of its columns are excluded" if excluded else "no columns were chosen"
        raise InputError(f"{path}: {what}. Name at least one that is to be read.")
    return kept


def _places(path: Path, wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Indices of columns by name, by number from 1 unless names are numbers, or by a range."""
    places: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        places.setdefault(name, []).append(j)
    numbered = not any(name.isdigit() for name in names)

    def place(name: str) -> int | None:
        if name in places:
            if len(places[name]) == 1:
                return places[name][0]
            raise InputError(
                f"{path}: has {len(places[name])} columns {quoted(name)}. Rename them."
            )
        by_number = numbered and name.isdecimal() and 1 <= int(name) <= len(names)
        return int(name) - 1 if by_number else None

    found: list[int] = []
    for name in wanted:
        single = place(name)
        if single is not None:
            found.append(single)
            continue
        cuts = [(name[:i].strip(), name[i + 1 :].strip()) for i, c in enumerate(name) if c == "-"]
        ends = [(place(first), place(last)) for first, last in cuts]
        ranges = [range(a, b + 1) for a, b in ends if a is not None and b is not None and a <= b]
        if not ranges:
            there = listed([quoted(other) for other in places])
            raise InputError(f"{path}: has no column {quoted(name)}. Its columns: {there}.")
        found += ranges[0]
    return list(dict.fromkeys(found))


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
