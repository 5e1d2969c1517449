"""KITTI's laser scans: a ``.bin`` of nothing but float32, four to a point: x, y, z, reflectance.

There is no header, and many things end in .bin. So the size must be a multiple of 16 bytes, and the
numbers must look like a scan: within a kilometre of the sensor, reflectances from 0 on.

x, y and z are read unless other columns are asked for. A scan has no room for labels, and the
numbers of SemanticKITTI's ``.label`` files mean other things (1 is an outlier there). So the answer
is a PLY cloud, which any viewer opens: x, y, z, reflectance, distance, probability and inlier (1,
or 0 for outliers; 255 if the point is not finite), the points in the order of the scan.
"""

from pathlib import Path

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._checks import check_memory, file_size, in_bytes, no_choice
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._ply import write_cloud
from perpend.formats._points import added_fields, chosen, from_points
from perpend.formats._records import select
from perpend.formats._write import answer_path

FIELDS = ("x", "y", "z", "reflectance")
POINT = 16  # bytes
NEAR, FAR = 0.01, 1000.0  # metres; a laser on a car sees some 120
BRIGHTEST = 65535.0  # 1 in KITTI itself; others store bytes or 16-bit counts
ENOUGH = 0.9  # share of points that must look like a scan
ROWS = 1 << 18


def read(path: Path, options: Options) -> Dataset:
    """Read a scan."""
    no_choice(path, options.variable)
    size = file_size(path)
    if size % POINT:
        raise InputError(
            f"{path}: {in_bytes(size)} are no whole number of points of 4 float32 values. Is it a "
            "cut-off copy, or something else than a KITTI scan?"
        )
    columns = chosen(path, options.columns, FIELDS)
    points = _mapped(path)
    _check_looks(path, points)
    check_memory(str(path), len(points) * len(columns) * 4)
    X = points[:, select(path, columns, FIELDS)].astype(np.float32)
    return from_points(np.ascontiguousarray(X), path, "kitti", columns, stored_dtype="float32")


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


def _check_looks(path: Path, points: Array) -> None:
    """Refuse numbers that are no scan, such as an array of another type."""
    good = judged = 0
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for begin in range(0, len(points), ROWS):
        block = points[begin : begin + ROWS]
        with np.errstate(invalid="ignore"):  # there are NaN that complain
            extent = np.abs(block[:, :3]).max(axis=1)
            known = ~np.isnan(extent) & (extent > 0)  # no echo: NaN, or zeros
            light = block[:, 3]
            looks = (extent >= NEAR) & (extent <= FAR) & (light >= 0) & (light <= BRIGHTEST)
            looks &= known
        judged += int(np.count_nonzero(known))
        good += int(np.count_nonzero(looks))
        low = np.minimum(low, block[looks, :3].min(axis=0, initial=np.inf))
        high = np.maximum(high, block[looks, :3].max(axis=0, initial=-np.inf))
    # halves of small float64 numbers: one of two coordinates is always 0
    on_a_line = good > 1 and np.count_nonzero(low == high) > 1
    if good == 0 or good < ENOUGH * judged or on_a_line:
        raise InputError(
            f"{path}: does not look like a KITTI scan (x, y, z and reflectance as float32): "
            f"{'all on one line, ' if on_a_line else ''}{good} of {len(points)} points are within "
            f"{FAR:.0f} m of the sensor and have a reflectance. Is it another format that ends in "
            ".bin?"
        )
