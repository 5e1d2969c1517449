"""ENVI scenes: a text header (``.hdr``) and a raw file of numbers beside it.

The header has lines ``key = value``; lists in braces go on over many lines.

The raw file is never read at once. Floats in the byte order of this machine are mapped if the bands
are stored pixel by pixel (``bip``) or one after the other (``bsq``, seen transposed), the
chosen bands are neighbours, and no pixel is left out. Everything else (integers, a foreign byte
order, ``bil``) is copied once, into float32 if the file is float32, otherwise into float64.

Bands that the header marks as bad (``bbl``) are left out, unless they are chosen by name. Values
are taken as stored: gains, offsets and scale factors of the header are not applied.

The labels are written as a classification image (0 no data, 1 inlier, 2 outlier; ENVI counts
classes from 0) and an image of two bands with the distances and probabilities. Both have the map
coordinates of the scene.
"""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend._files import write, writing
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats import _checks as check
from perpend.formats._checks import file_size, in_bytes, quoted
from perpend.formats._dataset import Dataset, Labelled, Options
from perpend.formats._raw import Raw
from perpend.formats._records import NO_DATA, added_values, float_type, select
from perpend.formats._stream import Blocks

RAW_SUFFIXES = ("", ".img", ".raw", ".dat", ".bsq", ".bil", ".bip", ".cube")
SIDES = {  # axes of the raw file, slowest first
    "bsq": ("bands", "lines", "samples"),
    "bil": ("lines", "bands", "samples"),
    "bip": ("lines", "samples", "bands"),
}
# key = value, or key = {...} over many lines; a semicolon begins a remark
ENTRY = re.compile(r"^(?![ \t]*;)([^=\n]*)=[ \t]*(\{[^}]*\}?.*|.*)", re.MULTILINE)
HEADER_BYTES = 4 << 20  # usual headers have about ten thousand
TYPES = {1: "u1", 2: "i2", 3: "i4", 4: "f4", 5: "f8"} | {12: "u2", 13: "u4", 14: "i8", 15: "u8"}
MAX_BANDS = 1 << 20  # each gets a name
COMPLEX = (6, 9)
UNITS = {"nanometers": " nm", "micrometers": " um", "wavenumber": " 1/cm"}
COORDINATES = (
    *("map info", "coordinate system string", "projection info", "geo points", "rpc info"),
    *("x start", "y start", "pixel size"),
)


class Header(NamedTuple):
    """What a header declares about the raw file."""

    lines: int
    samples: int
    bands: int
    dtype: np.dtype[Any]
    interleave: str
    offset: int
    names: tuple[str, ...]  # of the bands
    bad: tuple[int, ...]  # bands that are marked as such
    ignore: float  # value of pixels without data; NaN if there is none
    coordinates: tuple[str, ...]  # the lines that place the scene on a map
    stem: str  # name of the raw file without its suffix


class _Entries(dict[str, str]):
    """The entries of a header, keys in small letters; values in braces keep them."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        for key, value in ENTRY.findall("\n".join(text.splitlines()[1:])):
            if value.startswith("{") and "}" not in value:
                what = f"the braces of {quoted(key.strip())} are not closed"
                raise InputError(f"{path}: {what}. Is it a cut-off copy?")
            lines = [line.strip() for line in value.splitlines()]
            self[" ".join(key.lower().split())] = " ".join(lines)

    def parts(self, key: str) -> list[str]:
        """Entries of a list."""
        inside = self.get(key, "").strip().removeprefix("{").partition("}")[0].strip()
        return [part.strip() for part in inside.split(",")] if inside else []

    def count(self, key: str, default: int | None = None) -> int:
        """Return a whole number; without a default, the line must be there."""
        value = self.get(key, None if default is None else str(default))
        if value is None:
            raise InputError(f"{self.path}: has no line '{key} = ...'. A scene needs it; add it.")
        if not re.fullmatch(r"\+?[0-9]{1,15}", value):
            raise InputError(f"{self.path}: {key} = {quoted(value)} is not a count. Correct it.")
        return int(value)

    def number(self, key: str, text: str) -> float:
        """Read a number in the value of a key."""
        try:
            return float(text)
        except ValueError:
            raise InputError(
                f"{self.path}: {key}: {quoted(text)} is not a number. Correct it."
            ) from None


def opened(path: Path, options: Options) -> Blocks:
    """Open a scene by its header or by its raw file."""
    header_path, raw = _pair(path)
    header = _read_header(header_path, raw)
    bands = [j for j in range(header.bands) if j not in header.bad]
    if not bands and options.columns is None:
        raise InputError(f"{path}: 'bbl' marks every band as bad. Choose columns, or remove it.")
    bands = select(path, options, header.names, bands)
    sides = SIDES[header.interleave]
    shape = tuple(getattr(header, side) for side in sides)
    axes = tuple(sides.index(side) for side in SIDES["bip"])
    dtype = float_type(header.dtype)
    return Blocks(
        path,
        options,
        "image",
        shape=(header.lines, header.samples),
        width=len(bands),
        dtype=dtype,
        **Raw(raw, header.dtype, header.offset, shape, axes).readers(bands, dtype),
        files={raw: header.lines * header.samples},
        columns=tuple(header.names[j] for j in bands),
        ignore=np.full(len(bands), header.ignore),
        dropped=() if options.columns else tuple(header.names[j] for j in header.bad),
        stored=header.dtype.name,
        origin=header,
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
        raise InputError(f"{path}: there is no header {path.stem}.hdr beside it. It needs one.")
    exact = [other for other in headers if other.name.lower() == f"{path.name}.hdr".lower()]
    return (exact or headers)[0], path


def _beside(path: Path, names: set[str]) -> list[Path]:
    """Files in the same folder by these names, in capitals or not."""
    small = {name.lower() for name in names}
    return sorted(
        other for other in path.parent.iterdir() if other.name.lower() in small and other.is_file()
    )


def _read_header(path: Path, raw: Path) -> Header:
    """Read the header of a raw file; errors name what is missing or contradictory."""
    size = file_size(path)
    if size > HEADER_BYTES:
        raise InputError(f"{path}: {in_bytes(size)} is too much for an ENVI header.")
    text = path.read_bytes().decode("utf-8-sig", errors="replace")
    if not text.lstrip().upper().startswith("ENVI"):
        raise InputError(f"{path}: does not begin with the word ENVI. Is it of another format?")
    entries = _Entries(path, text)
    _check_kind(path, entries)
    extent = {key: entries.count(key) for key in ("lines", "samples", "bands")}
    check.extent(str(path), **extent)
    bands, dtype, offset = extent["bands"], _dtype(path, entries), entries.count("header offset", 0)
    if bands > MAX_BANDS:
        raise InputError(f"{path}: says {bands} bands; at most {MAX_BANDS} can be read.")
    interleave = entries.get("interleave", "bsq").lower()
    if interleave not in SIDES:
        those = ", ".join(SIDES)
        raise InputError(f"{path}: interleave = {quoted(interleave)} is not one of {those}.")
    marks = entries.parts("bbl")
    if marks and len(marks) != bands:
        what = f"'bbl' has {len(marks)} entries for {bands} bands"
        raise InputError(f"{path}: {what}. Correct or remove it.")
    _check_size(path, offset + math.prod(extent.values()) * dtype.itemsize, raw)
    ignore = "".join(entries.parts("data ignore value")) or "nan"
    return Header(
        **extent,
        dtype=dtype,
        interleave=interleave,
        offset=offset,
        names=_names(entries, bands),
        bad=tuple(j for j, mark in enumerate(marks) if entries.number("bbl", mark) == 0),
        ignore=entries.number("data ignore value", ignore),
        coordinates=tuple(f"{key} = {entries[key]}" for key in COORDINATES if key in entries),
        stem=raw.stem,
    )


def _check_kind(path: Path, entries: _Entries) -> None:
    """Refuse ENVI files that are not plain scenes."""
    if "spectral library" in entries.get("file type", "").lower():
        raise InputError(f"{path}: is a library of spectra, not a scene. Save it as a table.")
    if entries.get("file compression", "0").strip() not in ("", "0"):
        raise InputError(f"{path}: the raw file is compressed. Save it uncompressed.")
    for key in ("major frame offsets", "minor frame offsets"):
        if any(value not in ("0", "") for value in entries.parts(key)):
            raise InputError(f"{path}: has {key!r}, which are not supported. Save it without.")


def _dtype(path: Path, entries: _Entries) -> np.dtype[Any]:
    code, order = entries.count("data type"), entries.count("byte order", 0)
    if code in COMPLEX:
        raise InputError(
            f"{path}: 'data type = {code}' are complex numbers. Save the real part or the modulus."
        )
    if code not in TYPES:
        known = ", ".join(map(str, TYPES))
        raise InputError(f"{path}: 'data type = {code}' is unknown. Known types: {known}.")
    if order not in (0, 1):
        raise InputError(f"{path}: 'byte order = {order}' is neither 0 (Intel) nor 1 (network).")
    return np.dtype("<>"[order] + TYPES[code])


def _names(entries: _Entries, bands: int) -> tuple[str, ...]:
    """Band names, or the wavelengths with their unit; lists of another length are ignored."""
    unit = UNITS.get(entries.get("wavelength units", "").lower(), "")
    for key, after in (("band names", ""), ("wavelength", unit)):
        names = entries.parts(key)
        if len(names) == bands and all(names):
            return tuple(f"{name}{after}" for name in names)
    return tuple(f"band {j + 1}" for j in range(bands))


def _check_size(path: Path, declared: int, raw: Path) -> None:
    """Compare the declared size with the size of the raw file."""
    present = file_size(raw)
    if declared == present:
        return
    cause = "cut-off copy, or wrong 'data type'?"
    if declared < present:
        cause = "wrong 'data type', 'bands' or 'header offset'?"
    sizes = in_bytes(declared), in_bytes(present)
    if sizes[0] == sizes[1]:  # rounding would hide the difference
        sizes = f"{declared} bytes", f"{present} bytes"
    raise InputError(f"{path} says {sizes[0]} but {raw.name} is {sizes[1]} ({cause}).")


def write_labelled(dataset: Dataset, labelled: Labelled, path: Path) -> Path:
    """Write ``NAME-labelled`` (classes) and ``NAME-labelled-distance``, each .hdr and .img."""
    header: Header = dataset.origin
    added = added_values(dataset, labelled)
    codes = np.full(256, 2, np.uint8)
    codes[[NO_DATA, 1]] = 0, 1
    about = {
        "file type": "ENVI Classification",
        "classes": "3",
        "class names": "{no data, inlier, outlier}",
        "class lookup": "{0, 0, 0, 70, 130, 180, 220, 60, 40}",
        "band names": "{inliers and outliers}",
    }
    path = path.with_name(f"{header.stem}-labelled.hdr")
    _write(path, {"inlier": added.pop("inlier")}, codes.__getitem__, header, about)
    about = {
        "file type": "ENVI Standard",
        "data ignore value": "nan",
        "band names": "{distance, probability of being an outlier}",
    }
    floats = np.dtype("<f4").type
    _write(path.with_stem(f"{path.stem}-distance"), added, floats, header, about)
    return path


def _write(
    path: Path,
    bands: dict[str, Array],
    stored: Callable[[Array], Array],
    header: Header,
    about: dict[str, str],
) -> None:
    """Write bands, each line as it is `stored`; the header last, so that the scene is complete."""
    lines, samples = header.lines, header.samples
    layout = {
        "samples": samples,
        "lines": lines,
        "bands": len(bands),
        "header offset": 0,
        "data type": {1: 1, 2: 4}[len(bands)],  # classes, or distances as float32
        "interleave": "bsq",
        "byte order": 0,
    }
    entries = [f"{key} = {value}" for key, value in (layout | about).items()]
    with writing(path.with_suffix(".img")) as stream:
        for band in bands.values():
            for line in band:
                stream.write(stored(line).tobytes())
    write(path, "\n".join(["ENVI", *entries, *header.coordinates, ""]))
