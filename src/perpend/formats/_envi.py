"""ENVI scenes: a text header (``.hdr``) and a raw file of numbers beside it.

The raw file is mapped, never read at once. Floats in the byte order of this machine stay on disk if
the bands are stored pixel by pixel (``bip``) or one after the other (``bsq``, seen transposed), the
chosen bands are neighbours, and no pixel is left out. Everything else (integers, a foreign byte
order, ``bil``) is copied once, into float32 if the file is float32, otherwise into float64.

Bands that the header marks as bad (``bbl``) are left out, unless they are chosen by name. Values
are taken as stored: gains, offsets and scale factors of the header are not applied.

The labels are written as a classification image (0 no data, 1 inlier, 2 outlier; ENVI counts
classes from 0) and an image of two bands with the distances and probabilities. Both have the map
coordinates of the scene.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend._files import writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._checks import check_memory, file_size, in_bytes, no_choice, quoted
from perpend.formats._dataset import Answer, Dataset, Options
from perpend.formats._envi_header import Header, read_header
from perpend.formats._pixels import from_pixels
from perpend.formats._records import BLOCK, NO_DATA, added_values, select

RAW_SUFFIXES = ("", ".img", ".raw", ".dat", ".bsq", ".bil", ".bip", ".cube")
SIDES = {  # axes of the raw file, slowest first
    "bsq": ("bands", "lines", "samples"),
    "bil": ("lines", "bands", "samples"),
    "bip": ("lines", "samples", "bands"),
}
WRONG_IF_LONGER = "'data type', 'bands' or 'header offset'"


class Origin(NamedTuple):
    """What the output takes over from the scene."""

    stem: str  # name of the raw file without its suffix
    coordinates: tuple[str, ...]  # lines of the header


def read(path: Path, options: Options) -> Dataset:
    """Open a scene by its header or by its raw file."""
    no_choice(path, options.variable)
    file_size(path)
    header_path, raw = _pair(path)
    header = read_header(header_path)
    _check_size(header_path, header, raw)
    bands = _bands(path, header, options.columns)
    dropped = () if options.columns else tuple(header.names[j] for j in header.bad)
    X = _map(raw, header, bands, str(path))
    ignore = None if header.ignore is None else np.full(len(bands), header.ignore)
    return from_pixels(
        X,
        path,
        "envi",
        (header.lines, header.samples),
        tuple(header.names[j] for j in bands),
        stored_dtype=header.dtype.name,
        ignore=ignore,
        dropped=dropped,
        origin=Origin(raw.stem, header.coordinates),
    )


def _pair(path: Path) -> tuple[Path, Path]:
    """Header and raw file of a scene, from either of the two."""
    if path.suffix.lower() == ".hdr":
        bare = path.with_suffix("")
        names = {bare.name + suffix for suffix in RAW_SUFFIXES}
        found = [other for other in _beside(path, names) if other != path]
        if not found:
            raise InputError(
                f"{path}: there is no raw file beside it. Looked for {bare.name} with one of "
                f"{' '.join(RAW_SUFFIXES[1:])}. Put it into the same folder."
            )
        if len(found) > 1:
            those = ", ".join(quoted(other.name) for other in found)
            raise InputError(f"{path}: may belong to {those}. Give one of these instead.")
        return path, found[0]
    headers = _beside(path, {f"{path.name}.hdr", f"{path.stem}.hdr"})
    if not headers:
        raise InputError(
            f"{path}: there is no header {path.stem}.hdr beside it, which an ENVI scene needs."
        )
    exact = [other for other in headers if other.name.lower() == f"{path.name}.hdr".lower()]
    return (exact or headers)[0], path


def _beside(path: Path, names: set[str]) -> list[Path]:
    """Files in the same folder by these names, in capitals or not."""
    small = {name.lower() for name in names}
    return sorted(
        other for other in path.parent.iterdir() if other.name.lower() in small and other.is_file()
    )


def _check_size(path: Path, header: Header, raw: Path) -> None:
    """Compare the declared size with the size of the file."""
    declared, present = header.offset + header.n_values * header.dtype.itemsize, file_size(raw)
    if declared == present:
        return
    cause = "cut-off copy, or wrong 'data type'?"
    if declared < present:
        cause = f"wrong {WRONG_IF_LONGER}?"
    raise InputError(
        f"{path} says {_distinct_size(declared, present)} but {raw.name} is "
        f"{_distinct_size(present, declared)} ({cause})."
    )


def _distinct_size(n: int, other: int) -> str:
    """Return a size with its unit, exact if rounding would hide the difference.

    >>> _distinct_size(9_100_000_000, 4_550_000_000), _distinct_size(1_000_001, 1_000_000)
    ('9.1 GB', '1000001 bytes')
    """
    return in_bytes(n) if in_bytes(n) != in_bytes(other) else f"{n} bytes"


def _bands(path: Path, header: Header, wanted: tuple[str, ...] | None) -> list[int]:
    if wanted is not None:
        return select(path, wanted, header.names)
    bands = [j for j in range(header.bands) if j not in header.bad]
    if not bands:
        raise InputError(f"{path}: 'bbl' marks every band as bad. Choose columns, or remove it.")
    return bands


def _map(raw: Path, header: Header, bands: list[int], where: str) -> Array:
    """All pixels as rows of floats; a view of the file if possible."""
    sides = {"bands": header.bands, "lines": header.lines, "samples": header.samples}
    shape = tuple(sides[side] for side in SIDES[header.interleave])
    mapped: Array = np.asarray(np.memmap(raw, header.dtype, "r", header.offset, shape))
    dtype = np.dtype(np.float32 if header.dtype.newbyteorder("=") == np.float32 else np.float64)
    n, first, last = header.lines * header.samples, bands[0], bands[-1] + 1
    neighbours = bands == list(range(first, last))
    if header.dtype == dtype and mapped.flags.aligned and neighbours:
        if header.interleave == "bip":
            return mapped.reshape(n, -1)[:, first:last]
        if header.interleave == "bsq":
            return mapped[first:last].reshape(-1, n).T
    check_memory(where, n * len(bands) * dtype.itemsize)
    cube = mapped.transpose([SIDES[header.interleave].index(side) for side in SIDES["bip"]])
    X = np.empty((header.lines, header.samples, len(bands)), dtype)
    step = max(1, BLOCK // (header.samples * header.bands * header.dtype.itemsize))
    for begin in range(0, header.lines, step):
        X[begin : begin + step] = cube[begin : begin + step][..., bands]
    return X.reshape(n, -1)


def write_answer(dataset: Dataset, answer: Answer, folder: Path) -> Path:
    """Write ``NAME-answer`` (classes) and ``NAME-answer-distance``, each .hdr and .img."""
    origin: Origin = dataset.origin
    added = added_values(dataset, answer)
    inlier = added["inlier"]
    classes = np.where(inlier == NO_DATA, 0, 2 - inlier).astype(np.uint8)
    values = np.stack([added["distance"], added["probability"]]).astype("<f4")
    path = _write(
        folder / f"{origin.stem}-answer.hdr",
        classes[np.newaxis],
        origin,
        {
            "file type": "ENVI Classification",
            "classes": "3",
            "class names": "{no data, inlier, outlier}",
            "class lookup": "{0, 0, 0, 70, 130, 180, 220, 60, 40}",
            "band names": "{inliers and outliers}",
        },
    )
    _write(
        folder / f"{origin.stem}-answer-distance.hdr",
        values,
        origin,
        {
            "file type": "ENVI Standard",
            "data ignore value": "nan",
            "band names": "{distance, probability of being an outlier}",
        },
    )
    return path


def _write(path: Path, image: Array, origin: Origin, entries: dict[str, Any]) -> Path:
    """Write bands x height x width; the header last, so that the scene is complete."""
    bands, lines, samples = image.shape
    layout = {
        "samples": samples,
        "lines": lines,
        "bands": bands,
        "header offset": 0,
        "data type": {1: 1, 4: 4}[image.itemsize],
        "interleave": "bsq",
        "byte order": 0,
    }
    lines_of_text = [f"{key} = {value}" for key, value in (layout | entries).items()]
    text = "\n".join(["ENVI", *lines_of_text, *origin.coordinates, ""])
    with writing(path.with_suffix(".img")) as stream:
        stream.write(image.tobytes())
    with writing(path) as stream:
        stream.write(text.encode("utf-8"))
    return path
