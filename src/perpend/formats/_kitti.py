"""KITTI's laser scans: a ``.bin`` of nothing but float32, four to a point: x, y, z, reflectance.

There is no header, and other formats end in .bin, too. So the size must be a multiple of 16 bytes,
and the numbers must look like a scan: within a kilometre of the sensor, reflectances from 0 on.

x, y and z are read unless other columns are chosen. A scan has no room for labels, and the numbers
of SemanticKITTI's ``.label`` files mean other things (1 is an outlier there). So the labels are
written to a PLY cloud, which any viewer opens: x, y, z, reflectance, distance, probability and
inlier (1, or 0 for outliers; 255 if the point is not finite), in the order of the scan.
"""

from pathlib import Path

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._answer_path import answer_path
from perpend.formats._checks import check_memory, file_size, in_bytes, no_choice
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._ply import write_cloud
from perpend.formats._points import added_fields, chosen, from_points
from perpend.formats._records import select

FIELDS = ("x", "y", "z", "reflectance")
POINT = 16  # bytes
NEAREST, FARTHEST = 0.01, 1000.0  # metres; a laser on a car reaches about 120
BRIGHTEST = 65535.0  # 1 in KITTI itself; others store bytes or 16-bit counts
SCAN_SHARE = 0.9  # of points that must look like a scan
ROWS = 1 << 18


def read(path: Path, options: Options) -> Dataset:
    """Read a scan."""
    no_choice(path, options.variable)
    size = file_size(path)
    if size % POINT:
        raise InputError(
            f"{path}: {in_bytes(size)} are not a whole number of points of 4 float32 values. Is it "
            "a cut-off copy, or not a KITTI scan?"
        )
    columns = chosen(path, options.columns, FIELDS)
    points = _mapped(path)
    _check_values(path, points)
    check_memory(str(path), len(points) * len(columns) * 4)
    X = np.empty((len(points), len(columns)), np.float32)
    for j, field in enumerate(select(path, columns, FIELDS)):
        X[:, j] = points[:, field]
    return from_points(X, path, "kitti", columns, stored_dtype="float32")


def write_answer(dataset: Dataset, answer: Answer, folder: Path) -> Path:
    """Write the scan as a PLY cloud, with three more properties."""
    source = Path(dataset.source)
    out = answer_path(dataset, folder).with_suffix(".ply")
    if file_size(source) != dataset.shape[0] * POINT:
        raise InputError(f"{source}: has changed since it was read. Read it again.")
    points = _mapped(source)
    fields = {name: points[:, j] for j, name in enumerate(FIELDS)}
    write_cloud(out, fields | added_fields(dataset, answer, FIELDS))
    return out


def _mapped(path: Path) -> Array:
    return np.asarray(np.memmap(path, "<f4", "r")).reshape(-1, len(FIELDS))


def _check_values(path: Path, points: Array) -> None:
    """Refuse numbers that are not a scan, such as an array of another type."""
    good = total = 0
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for begin in range(0, len(points), ROWS):
        block = points[begin : begin + ROWS]
        with np.errstate(invalid="ignore"):  # signalling NaN
            x, y, z, light = block.T
            extent = np.maximum(np.maximum(np.abs(x), np.abs(y)), np.abs(z))
            known = extent > 0  # no echo: NaN, or zeros
            fits = known & (extent >= NEAREST) & (extent <= FARTHEST)
            fits &= (light >= 0) & (light <= BRIGHTEST)
        total += int(np.count_nonzero(known))
        good += int(np.count_nonzero(fits))
        for j, values in enumerate((x, y, z)):
            low[j] = values.min(where=fits, initial=low[j])
            high[j] = values.max(where=fits, initial=high[j])
    # small float64 numbers, read as pairs of float32, have a zero in every second coordinate
    on_a_line = good > 1 and np.count_nonzero(low == high) > 1
    if good == 0 or good < SCAN_SHARE * total or on_a_line:
        raise InputError(
            f"{path}: does not look like a KITTI scan (x, y, z and reflectance as float32): "
            f"{'all on one line, ' if on_a_line else ''}{good} of {len(points)} points are within "
            f"{FARTHEST:.0f} m of the sensor and have a reflectance. Is it another format?"
        )
