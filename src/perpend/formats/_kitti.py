"""KITTI's laser scans: a ``.bin`` of nothing but float32, four to a point: x, y, z, reflectance.

There is no header, and other formats end in .bin, too. So the size must be a multiple of 16 bytes,
and the numbers must look like a scan: within a kilometre of the sensor, reflectances from 0 on.

x, y and z are read unless other columns are chosen. A scan has no room for labels, and the numbers
of SemanticKITTI's ``.label`` files mean other things (1 is an outlier there). So the labels are
written to a PLY cloud, which any viewer opens, with the same points in the same order.
"""

from pathlib import Path

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._checks import in_bytes
from perpend.formats._damage import changed
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._ply import write_cloud
from perpend.formats._points import Points, added_fields
from perpend.formats._stream import Blocks

POINT = np.dtype([(name, "<f4") for name in ("x", "y", "z", "reflectance")])
NEAREST, FARTHEST = 0.01, 1000.0  # metres; a laser on a car reaches about 120
BRIGHTEST = 65535.0  # 1 in KITTI itself; others store bytes or 16-bit counts
SCAN_SHARE = 0.9  # of points that must look like a scan
ROWS = 1 << 18


def opened(path: Path, options: Options) -> Blocks:
    """Open a scan."""
    n, rest = divmod(path.stat().st_size, POINT.itemsize)
    if rest:
        raise InputError(
            f"{path}: {in_bytes(n * POINT.itemsize + rest)} are not a whole number of points of 4 "
            "float32 values. Is it a cut-off copy, or not a KITTI scan?"
        )
    points = Points(n, POINT, 0, is_text=False)
    _check_values(path, points.mapped(path))
    return points.blocks(path, options)


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write the scan as a PLY cloud, with three more properties."""
    source, path = Path(dataset.source), path.with_suffix(".ply")
    points = Points(dataset.shape[0], POINT, 0, is_text=False)
    if source.stat().st_size != points.n * POINT.itemsize:
        raise changed(source)
    write_cloud(path, points.mapped(source), added_fields(dataset, labelled, points.names))
    return path


def _check_values(path: Path, points: Array) -> None:
    """Refuse numbers that are not a scan, such as an array of another type."""
    numbers = points.view("<f4").reshape(len(points), -1)
    good = total = 0
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for begin in range(0, len(points), ROWS):
        block = numbers[begin : begin + ROWS]
        place, light = block[:, :3], block[:, 3]
        with np.errstate(invalid="ignore"):  # signalling NaN
            extent = np.abs(place).max(axis=1)
            known = extent > 0  # no echo: NaN, or zeros
            fits = known & (extent >= NEAREST) & (extent <= FARTHEST)
            fits &= (light >= 0) & (light <= BRIGHTEST)
        total += int(np.count_nonzero(known))
        good += int(np.count_nonzero(fits))
        if fits.any():
            low = np.minimum(low, place[fits].min(axis=0))
            high = np.maximum(high, place[fits].max(axis=0))
    # small float64 numbers, read as pairs of float32, have a zero in every second coordinate
    on_a_line = good > 1 and np.count_nonzero(low == high) > 1
    if good == 0 or good < SCAN_SHARE * total or on_a_line:
        raise InputError(
            f"{path}: does not look like a KITTI scan (x, y, z and reflectance as float32): "
            f"{'all on one line, ' if on_a_line else ''}{good} of {len(points)} points are within "
            f"{FARTHEST:.0f} m of the sensor and have a reflectance. Is it another format?"
        )
