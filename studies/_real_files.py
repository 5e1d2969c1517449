"""The files of the real-data experiment: where they are, what they hold, and where they come from.

They stay where they are, in the folder that ``PERPEND_DATA`` names. A kind of data whose folder is
missing is left out; a folder that is there must be complete.
"""

import os
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError


class Source(NamedTuple):
    """One kind of data."""

    folder: str
    files: tuple[str, ...]
    arrays: str  # what each file holds
    original: str  # where the public original is


SOURCES = {
    "roads": Source(
        "kitti_roadplane",
        ("kitti_0929_0071_0221.npz", "kitti_0929_0071_0328.npz"),
        "points (n, 3) and is_road (n,)",
        "KITTI frames with the road marked: github.com/tding1/Noisy-DPCP",
    ),
    "tables": Source(
        "mosd_tabletop",
        ("test24.npz", "test55.npz"),
        "points (n, 3) and is_table (n,)",
        "Kinect scenes of tables: github.com/PointCloudLibrary/data",
    ),
    "anomalies": Source(
        "hsi_anomaly",
        ("abu-airport-4.npz", "abu-beach-3.npz", "abu-urban-3.npz", "hydice.npz"),
        "cube (height, width, bands) and mask (height, width), 1 for anomalies",
        "the ABU scenes and HYDICE Urban: github.com/jiojio0505/OT-AD",
    ),
    "faces": Source(
        "faces",
        ("extended_yaleb_32x32.npz",),
        "images (n, 1024) and subject (n,)",
        "the Extended Yale B faces, 32 x 32 pixels (Georghiades and others, 2001)",
    ),
    "homographies": Source(
        "adelaide_rmf",
        ("adelaide_rmf_points_labels.npz",),
        "H_NAME_pts (n, 6) and H_NAME_label (n,), 0 for outliers, for each scene NAME",
        "AdelaideRMF (Wong, Chin, Yu and Suter, ICCV 2011)",
    ),
    "detectors": Source(
        "adbench",
        (
            *("6_cardio.npz", "18_Ionosphere.npz", "25_musk.npz"),
            *("30_satellite.npz", "43_WDBC.npz"),
        ),
        "X (n, D) and y (n,), 1 for anomalies",
        "github.com/Minqi824/ADBench",
    ),
}


def find_sources() -> dict[str, list[Path]]:
    """Return the files of every kind of data that is there; says what is missing otherwise."""
    name = os.environ.get("PERPEND_DATA", "")
    root = Path(name)
    if not name or not root.is_dir():
        where = f"PERPEND_DATA={name} is no folder" if name else "PERPEND_DATA is not set"
        raise InputError(
            f"the real-data experiment reads from the folder that PERPEND_DATA names, and {where}. "
            f"It looks there for:\n{_wanted()}"
        )
    found = {
        kind: [root / source.folder / file for file in source.files]
        for kind, source in SOURCES.items()
        if (root / source.folder).is_dir()
    }
    if not found:
        raise InputError(
            f"{root}: has none of the folders of the real-data experiment. It looks there for:\n"
            f"{_wanted()}"
        )
    for kind, paths in found.items():
        for path in paths:
            if not path.is_file():
                source = SOURCES[kind]
                raise InputError(
                    f"{path}: is missing. It should hold {source.arrays}. The public original: "
                    f"{source.original}. Or remove the folder {source.folder} to leave this kind "
                    "of data out."
                )
    return found


def _wanted() -> str:
    return "\n".join(
        f"  {source.folder}/: {', '.join(source.files)} with {source.arrays}; {source.original}"
        for source in SOURCES.values()
    )


def checksum(path: Path) -> str:
    """Return a checksum of a file, so that a case says completely what is computed."""
    return sha256(path.read_bytes()).hexdigest()[:16]


def read_arrays(path: str | Path, *names: str) -> list[Array]:
    """Return arrays of an .npz file by their names."""
    with np.load(path, allow_pickle=False) as archive:
        missing = [name for name in names if name not in archive.files]
        if missing:
            raise InputError(
                f"{path}: has no array {missing[0]!r}. It holds: {', '.join(archive.files)}."
            )
        return [archive[name] for name in names]


def array_names(path: str | Path) -> list[str]:
    """Return the names of the arrays in an .npz file."""
    with np.load(path, allow_pickle=False) as archive:
        return list(archive.files)
