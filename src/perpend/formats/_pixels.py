"""From the pixels of a scene to a dataset, without those that have no data."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._checks import check_memory
from perpend.formats._dataset import Counts, Dataset
from perpend.formats._records import BLOCK


def from_pixels(
    X: Array,
    path: Path,
    name: str,
    shape: tuple[int, int],
    columns: tuple[str, ...],
    *,
    stored_dtype: str,
    ignore: Array | None = None,
    masked: Array | None = None,
    dropped: tuple[str, ...] = (),
    origin: Any = None,
) -> Dataset:
    """Dataset of the pixels that have data.

    A pixel has no data if *every* band has its ignore value, or by the file's mask. If only some
    bands have it, the value may be a measurement (0 in a dark band), so the pixel stays and is
    counted as partly ignored; a robust method finds out whether it is an outlier. Pixels with NaN
    or infinities are left out as well.

    Parameters
    ----------
    X : array of shape (height * width, D)
        All pixels, row by row; float32 or float64. It is copied only if pixels are left out.
    path : Path
        The file.
    name : str
        Name of the format.
    shape : (int, int)
        Height and width.
    columns : tuple of str
        Names of the bands.
    stored_dtype : str
        As in the file.
    ignore : array of shape (D,), optional
        The ignore value of each band; NaN in bands that have none.
    masked : array of bool of shape (height * width,), optional
        Pixels that the file's mask leaves out.
    dropped : tuple of str
        Names of the bands that were left out.
    origin : object
        For the format's writer.
    """
    n, D = X.shape
    keep = np.ones(n, bool) if masked is None else ~masked
    nan = ignored = zero = partly = 0
    marks = None
    if ignore is not None and not np.isnan(ignore).all():
        with np.errstate(over="ignore"):  # 1e300 in a scene of float32 marks infinities
            marks = ignore.astype(X.dtype)
    step = max(1, BLOCK // (D * X.itemsize))
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
    if not keep.all():
        positions = np.flatnonzero(keep)
        if len(positions) == 0:
            raise InputError(
                f"{path}: no pixel has data: {ignored} of {n} are marked as no data, {nan} have a "
                "NaN or an infinity. Check the ignore value, and leave out bad bands."
            )
        check_memory(str(path), len(positions) * D * X.itemsize)
        X = X[positions]
    counts = Counts(nan, ignored, zero, dropped, partly)
    return Dataset(
        X, str(path), name, "image", shape, columns, positions, stored_dtype, counts, origin
    )


def band_names(n: int) -> tuple[str, ...]:
    """Names for bands without any, counted from 1."""
    return tuple(f"band {j + 1}" for j in range(n))


def check_extent(where: str, extent: dict[str, int]) -> int:
    """Return the number of values of an image; refuse one with an empty side.

    Parameters
    ----------
    where : str
        For the message.
    extent : dict
        Sides by name, such as lines, samples and bands.
    """
    for side, length in extent.items():
        if length < 1:
            raise InputError(f"{where}: {side} is {length}, so there are no values to read.")
    return math.prod(extent.values())
