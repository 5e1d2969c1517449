"""The text header of an ENVI scene: ``key = value`` lines, lists in braces over many lines."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from perpend.exceptions import InputError
from perpend.formats._checks import file_size, in_bytes, quoted
from perpend.formats._pixels import band_names, check_extent

LIMIT = 4 << 20  # bytes; usual headers have about ten thousand
TYPES = {1: "u1", 2: "i2", 3: "i4", 4: "f4", 5: "f8"} | {12: "u2", 13: "u4", 14: "i8", 15: "u8"}
MAX_BANDS = 1 << 20  # each gets a name
COMPLEX = (6, 9)
INTERLEAVES = ("bsq", "bil", "bip")
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
    ignore: float | None  # value of pixels without data
    coordinates: tuple[str, ...]  # the lines that place the scene on a map

    @property
    def n_values(self) -> int:
        """Number of values in the raw file."""
        return self.lines * self.samples * self.bands


def read_header(path: Path) -> Header:
    """Read a header; errors name what is missing or contradictory."""
    size = file_size(path)
    if size > LIMIT:
        raise InputError(f"{path}: {in_bytes(size)} is too much for an ENVI header.")
    text = path.read_bytes().decode("utf-8-sig", errors="replace")
    if not text.lstrip().upper().startswith("ENVI"):
        raise InputError(
            f"{path}: does not begin with the word ENVI. Is it the header of another format?"
        )
    entries = _entries(path, text)
    _check_kind(path, entries)
    extent = {key: _integer(path, entries, key) for key in ("lines", "samples", "bands")}
    check_extent(str(path), extent)
    bands = extent["bands"]
    if bands > MAX_BANDS:
        raise InputError(f"{path}: says {bands} bands; at most {MAX_BANDS} can be read.")
    return Header(
        **extent,
        dtype=_dtype(path, entries),
        interleave=_interleave(path, entries),
        offset=_integer(path, entries, "header offset", 0),
        names=_names(entries, bands),
        bad=_bad(path, entries, bands),
        ignore=_ignore(path, entries),
        coordinates=tuple(f"{key} = {entries[key]}" for key in COORDINATES if key in entries),
    )


def _entries(path: Path, text: str) -> dict[str, str]:
    """All entries, keys in small letters; values in braces keep them."""
    entries: dict[str, str] = {}
    lines = iter(text.splitlines()[1:])
    for line in lines:
        key, equals, value = line.partition("=")
        if not equals or line.lstrip().startswith(";"):
            continue
        value = value.strip()
        if value.startswith("{"):
            parts = [value]
            while "}" not in parts[-1]:
                following = next(lines, None)
                if following is None:
                    raise InputError(
                        f"{path}: the braces of {quoted(key.strip())} are not closed. "
                        "Is it a cut-off copy?"
                    )
                parts.append(following.strip())
            value = " ".join(parts)
        entries[" ".join(key.lower().split())] = value
    return entries


def _check_kind(path: Path, entries: dict[str, str]) -> None:
    """Refuse ENVI files that are not plain scenes."""
    kind = entries.get("file type", "").lower()
    if "spectral library" in kind:
        raise InputError(f"{path}: is a library of spectra, not a scene. Save it as a table.")
    if entries.get("file compression", "0").strip() not in ("", "0"):
        raise InputError(f"{path}: the raw file is compressed. Save it uncompressed.")
    for key in ("major frame offsets", "minor frame offsets"):
        if any(value not in ("0", "") for value in _list(entries.get(key, ""))):
            raise InputError(f"{path}: has {key!r}, which are not supported. Save it without.")


def _list(value: str) -> list[str]:
    inside = value.strip().removeprefix("{").partition("}")[0].strip()
    return [part.strip() for part in inside.split(",")] if inside else []


def _integer(path: Path, entries: dict[str, str], key: str, default: int | None = None) -> int:
    value = entries.get(key)
    if value is None and default is not None:
        return default
    if value is None:
        raise InputError(f"{path}: has no line '{key} = ...', which a scene needs. Add it.")
    if not re.fullmatch(r"\+?[0-9]{1,15}", value):
        raise InputError(f"{path}: {key} = {quoted(value)} is not a count. Correct the line.")
    return int(value)


def _dtype(path: Path, entries: dict[str, str]) -> np.dtype[Any]:
    code = _integer(path, entries, "data type")
    if code in COMPLEX:
        raise InputError(
            f"{path}: 'data type = {code}' are complex numbers. Save the real part or the modulus."
        )
    if code not in TYPES:
        known = ", ".join(map(str, TYPES))
        raise InputError(f"{path}: 'data type = {code}' is unknown. Known types: {known}.")
    order = _integer(path, entries, "byte order", 0)
    if order not in (0, 1):
        raise InputError(f"{path}: 'byte order = {order}' is neither 0 (Intel) nor 1 (network).")
    return np.dtype("<>"[order] + TYPES[code])


def _interleave(path: Path, entries: dict[str, str]) -> str:
    value = entries.get("interleave", "bsq").lower()
    if value not in INTERLEAVES:
        raise InputError(
            f"{path}: interleave = {quoted(value)} is not one of {', '.join(INTERLEAVES)}."
        )
    return value


def _names(entries: dict[str, str], bands: int) -> tuple[str, ...]:
    """Band names, or the wavelengths with their unit; lists of another length are ignored."""
    names = _list(entries.get("band names", ""))
    if len(names) == bands and all(names):
        return tuple(names)
    wavelengths = _list(entries.get("wavelength", ""))
    if len(wavelengths) == bands and all(wavelengths):
        unit = UNITS.get(entries.get("wavelength units", "").lower(), "")
        return tuple(f"{wavelength}{unit}" for wavelength in wavelengths)
    return band_names(bands)


def _bad(path: Path, entries: dict[str, str], bands: int) -> tuple[int, ...]:
    marks = _list(entries.get("bbl", ""))
    if not marks:
        return ()
    if len(marks) != bands:
        raise InputError(
            f"{path}: 'bbl' has {len(marks)} entries for {bands} bands. Correct or remove it."
        )
    return tuple(j for j, mark in enumerate(marks) if _number(path, "bbl", mark) == 0)


def _ignore(path: Path, entries: dict[str, str]) -> float | None:
    value = "".join(_list(entries.get("data ignore value", "")))
    return _number(path, "data ignore value", value) if value else None


def _number(path: Path, key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{path}: {key}: {quoted(text)} is not a number. Correct it.") from None
