"""From records to a dataset, and from labels back to the places of the records."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import listed, quoted
from perpend.formats._dataset import Counts, Dataset, Kind, Labelled, Options

BLOCK = 1 << 22  # bytes of rows that are checked together
NO_DATA = 255  # in a mask of bytes


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
    (n, D), census = X.shape, Census(ignore, X.dtype)
    step = max(1, BLOCK // max(1, D * X.itemsize))
    keep = np.empty(n, bool)
    for begin in range(0, n, step):
        part = slice(begin, begin + step)
        keep[part] = census.usable(X[part], None if masked is None else masked[part])
    counts, positions = census.counts(dropped), None
    if kind != "table" and not keep.all():
        positions = np.flatnonzero(keep)
        if len(positions) == 0:
            raise no_data(path, kind, n, counts)
        check.memory(str(path), len(positions) * D * X.itemsize)
        X = X[positions]
    source, name, shape = str(path), options.format, shape or (n,)
    return Dataset(X, source, name, kind, shape, columns, positions, stored, counts, origin)


class Census:
    """Counts records, and finds those without data."""

    def __init__(self, ignore: Array | None, dtype: Any) -> None:
        self._nan = self._ignored = self._zero = self._partly = 0
        self._marks = None
        if ignore is not None and not np.isnan(ignore).all():
            with np.errstate(over="ignore"):  # 1e300 in a scene of float32 marks infinities
                self._marks = ignore.astype(dtype)

    def usable(self, block: Array, masked: Array | None = None) -> Array:
        """Return which records of a block are finite and neither masked nor marked as no data."""
        kept = np.ones(len(block), bool) if masked is None else ~masked
        with np.errstate(invalid="ignore"):  # signalling NaN, which damaged files have
            finite = np.isfinite(block).all(axis=1)
            if self._marks is not None:
                hits = block == self._marks
                every = hits.all(axis=1)
                self._partly += int(np.count_nonzero(hits.any(axis=1) & ~every))
                kept &= ~every
            self._ignored += int(np.count_nonzero(~kept))
            self._nan += int(np.count_nonzero(~finite))
            self._zero += int(np.count_nonzero(~block.any(axis=1)))
        return kept & finite

    def counts(self, dropped: tuple[str, ...]) -> Counts:
        """Return the counts so far."""
        return Counts(self._nan, self._ignored, self._zero, dropped, self._partly)


def no_data(path: Path, kind: Kind, n: int, counts: Counts) -> InputError:
    """Say why no pixel or point is left."""
    if not counts.ignored:
        what, advice = ("points", "") if kind == "cloud" else ("pixels", " Leave out bad bands.")
        return InputError(f"{path}: all of its {n} {what} have a NaN or an infinity.{advice}")
    return InputError(
        f"{path}: no pixel has data: {counts.ignored} of {n} are marked as no data, {counts.nan} "
        "have a NaN or an infinity. Check the ignore value, and leave out bad bands."
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
            if numbered and (problem := _wrong_range(name, len(names))):
                raise InputError(f"{path}: {problem}")
            there = listed([quoted(other) for other in places])
            raise InputError(f"{path}: has no column {quoted(name)}. Its columns: {there}.")
        found += ranges[0]
    return list(dict.fromkeys(found))


def _wrong_range(name: str, n: int) -> str:
    """Return what is wrong with numbers of columns; nothing if they are none."""
    if not (found := re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", name)):
        return ""
    first, last = int(found[1]), int(found[2] or found[1])
    if first > last:
        return f"columns {name}: the range ends before it begins. Write {last}-{first}."
    there = f"{n} column{'s' * (n != 1)}, counted from 1"
    return f"has no column{'s' * bool(found[2])} {name}: it has {there}."


def added_values(
    dataset: Dataset, labelled: Labelled, taken: Sequence[str] = ()
) -> dict[str, Array]:
    """Distance, probability and inlier for each record, by names that are not `taken`.

    Labels that are bytes have a value for every record and are used as they are, without a copy.
    """
    labels = np.asarray(labelled.labels)
    inlier = labels if labels.dtype == np.uint8 else np.asarray(labels == 1, np.uint8)
    columns = {
        "distance": (np.asarray(labelled.distance, float), math.nan),
        "probability": (np.asarray(labelled.probability, float), math.nan),
        "inlier": (inlier, NO_DATA),
    }
    added = {}
    for name, (values, missing) in columns.items():
        full = values
        if dataset.positions is not None:
            full = np.full(math.prod(dataset.shape), missing, dtype=values.dtype)
            full[dataset.positions] = values
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


def together(places: Sequence[int]) -> slice | list[int]:
    """Return places on an axis as a slice if they are neighbours, which is much faster.

    >>> together([2, 3, 4]), together([4, 2])
    (slice(2, 5, None), [4, 2])
    """
    first, last = places[0], places[-1] + 1
    return slice(first, last) if list(places) == list(range(first, last)) else list(places)


def float_type(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """Return what values become: float32 if all are, in either byte order, otherwise float64."""
    is_single = all(dtype.newbyteorder("=") == np.float32 for dtype in dtypes)
    return np.dtype(np.float32 if is_single else np.float64)
