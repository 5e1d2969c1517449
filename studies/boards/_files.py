"""The files of the boards: where they are, what they hold, and where they come from.

They stay where they are, in the folder that ``PERPEND_DATA`` names. A kind of data whose folder is
missing is left out; a folder that is there must be complete.
"""

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.experiments._experiment import Case


class Source(NamedTuple):
    """One kind of data."""

    folder: str
    files: tuple[str, ...]
    arrays: str  # what each file holds
    original: str  # where the public original is


SOURCES = {
    "tables": Source(
        "adbench",
        (
            *("10_cover.npz", "11_donors.npz", "12_fault.npz", "14_glass.npz", "16_http.npz"),
            *("18_Ionosphere.npz", "20_letter.npz", "23_mammography.npz", "25_musk.npz"),
            *("26_optdigits.npz", "28_pendigits.npz", "2_annthyroid.npz", "30_satellite.npz"),
            *("32_shuttle.npz", "37_Stamps.npz", "38_thyroid.npz", "40_vowels.npz"),
            *("41_Waveform.npz", "43_WDBC.npz", "44_Wilt.npz", "45_wine.npz", "47_yeast.npz"),
            *("4_breastw.npz", "6_cardio.npz"),
        ),
        "X (n, D) and y (n,), 1 for anomalies",
        "github.com/Minqi824/ADBench",
    ),
    "scenes": Source(
        "hsi_anomaly",
        ("abu-airport-4.npz", "abu-beach-3.npz", "abu-urban-3.npz", "hydice.npz"),
        "cube (height, width, bands) and mask (height, width), 1 for anomalies",
        "the ABU scenes and HYDICE Urban: github.com/jiojio0505/OT-AD",
    ),
    "roads": Source(
        "kitti_roadplane",
        ("kitti_0929_0071_0221.npz", "kitti_0929_0071_0328.npz"),
        "points (n, 3) and is_road (n,)",
        "KITTI frames with the road marked: github.com/tding1/Noisy-DPCP",
    ),
    "tabletops": Source(
        "mosd_tabletop",
        ("test24.npz", "test55.npz"),
        "points (n, 3) and is_table (n,)",
        "Kinect scenes of tables: github.com/PointCloudLibrary/data",
    ),
    "homogr": Source(
        "homogr",
        ("homogr_8_pairs.npz",),
        "PAIR_first and PAIR_second (n, 2), PAIR_inlier (n,), PAIR_check_first and "
        "PAIR_check_second (m, 2) for each pair of images",
        "HOMOGR (Lebeda, Matas and Chum, BMVC 2012): github.com/tianjiaoding/DPCP-Homography",
    ),
    "adelaide": Source(
        "adelaide_rmf",
        ("adelaide_rmf_points_labels.npz",),
        "H_NAME_pts or F_NAME_pts (n, 6), and with _label (n,), 0 for outliers, for each scene",
        "AdelaideRMF (Wong, Chin, Yu and Suter, ICCV 2011)",
    ),
    "classics": Source(
        "classics",
        ("hbk.csv", "octane.csv"),
        "a header and one row a line; the first column of hbk numbers the rows, that of octane is "
        "the octane number",
        "hbk (R package robustbase) and octane (R package rrcov)",
    ),
    "faces": Source(
        "faces",
        ("extended_yaleb_32x32.npz",),
        "images (n, 1024) and subject (n,)",
        "the Extended Yale B faces, 32 x 32 pixels (Georghiades and others, 2001)",
    ),
}


def files(*kinds: str, needed: bool = True) -> list[Case]:
    """Return a case for every file of these kinds of data; kinds without a folder are left out.

    If none of them has one, and they are needed, the error says what is missing. So it does for a
    folder that is there and not complete.
    """
    name = os.environ.get("PERPEND_DATA", "")
    root = Path(name)
    there = [kind for kind in kinds if name and (root / SOURCES[kind].folder).is_dir()]
    if not there and needed:
        where = f"PERPEND_DATA={name} has none of them" if name else "PERPEND_DATA is not set"
        raise InputError(
            f"the board reads from the folder that PERPEND_DATA names, and {where}. It looks "
            f"there for:\n{_wanted(kinds)}"
        )
    found = []
    for kind in there:
        source = SOURCES[kind]
        for path in (root / source.folder / file for file in source.files):
            if not path.is_file():
                raise InputError(
                    f"{path}: is missing. It should hold {source.arrays}. The public original: "
                    f"{source.original}."
                )
            place, mark = str(path.resolve()), sha256(path.read_bytes()).hexdigest()[:16]
            found.append({"kind": kind, "path": place, "checksum": mark})
    return found


def _wanted(kinds: Iterable[str]) -> str:
    return "\n".join(
        f"  {source.folder}/: {', '.join(source.files)} with {source.arrays}; {source.original}"
        for source in map(SOURCES.__getitem__, kinds)
    )


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
