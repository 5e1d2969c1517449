"""Damaged, foreign and lying images and point clouds."""

import struct
from pathlib import Path

import numpy as np

from cli.bad_inputs._case import Case, Make, bad

# -- ENVI: a header and a raw file -----------------------------------------------------------------

PIXELS = np.arange(4 * 5 * 3, dtype="<f4").tobytes()
HEADER = {
    "samples": "5",
    "lines": "4",
    "bands": "3",
    "header offset": "0",
    "data type": "4",
    "interleave": "bsq",
    "byte order": "0",
}


def envi_text(**changes: str | None) -> str:
    entries = HEADER | {key.replace("_", " "): value for key, value in changes.items()}
    lines = [f"{key} = {value}" for key, value in entries.items() if value is not None]
    return "\n".join(["ENVI", *lines]) + "\n"


def with_raw(header: str | bytes, raw: bytes | None = PIXELS) -> Make:
    def make(path: Path) -> None:
        path.write_bytes(header.encode() if isinstance(header, str) else header)
        if raw is not None:
            path.with_suffix(".img").write_bytes(raw)

    return make


def envi(what: str, says: str, raw: bytes | None = PIXELS, **changes: str | None) -> Case:
    return bad(what, "s.hdr", with_raw(envi_text(**changes), raw), says)


ENVI = [
    bad("empty", "s.hdr", with_raw(""), "the file is empty"),
    bad("another header", "s.hdr", with_raw("BYTEORDER I\nNROWS 4\n"), "word ENVI"),
    bad("binary", "s.hdr", with_raw(bytes(range(256))), "word ENVI"),
    bad("only the word", "s.hdr", with_raw("ENVI\n"), "has no line"),
    bad("cut in the header", "s.hdr", with_raw(envi_text()[:40]), "has no line"),
    bad("an open brace", "s.hdr", with_raw(envi_text() + "wavelength = {1, 2"), "not closed"),
    bad("a huge header", "s.hdr", with_raw("ENVI\n" + "; x\n" * 3_000_000), "too much for"),
    bad("no header", "s.img", PIXELS, "no header s.hdr"),
    envi("no raw file", "no raw file", raw=None),
    envi("an empty raw file", "s.img", raw=b""),
    envi("a cut raw file", "cut-off copy", raw=PIXELS[:-4]),
    envi("no samples", "samples", samples=None),
    envi("samples a word", "is not a count", samples="many"),
    envi("samples negative", "is not a count", samples="-5"),
    envi("no lines at all", "s.hdr", lines="0"),
    envi("terabytes of lines", "s.hdr says", lines="99999999999"),
    envi("more bands than can be", "bands", bands="999999999"),
    envi("no data type", "data type", data_type=None),
    envi("unknown data type", "is unknown", data_type="77"),
    envi("complex", "complex numbers", data_type="6"),
    envi("wrong data type", "s.hdr says", data_type="5"),
    envi("interleave", "is not one of", interleave="zigzag"),
    envi("byte order", "neither 0", byte_order="7"),
    envi("offset behind the end", "s.hdr says", header_offset="9999"),
    envi("offset negative", "is not a count", header_offset="-1"),
    envi("too few bad bands", "'bbl' has 2 entries", bbl="{1, 0}"),
    envi("all bands bad", "every band as bad", bbl="{0, 0, 0}"),
    envi("bad bands of words", "is not a number", bbl="{good, bad, ugly}"),
    envi("a library", "library of spectra", file_type="ENVI Spectral Library"),
    envi("compressed", "compressed", file_compression="1"),
    envi("nothing but no data", "s.hdr", raw=b"\0" * 240, data_ignore_value="0"),
    bad("no such band", "s.hdr", with_raw(envi_text()), "no column", "--columns", "Band 77"),
]


# -- clouds ----------------------------------------------------------------------------------------

POINTS = np.random.default_rng(1).standard_normal((30, 3)).astype("<f4")


def ply(
    head: str = "format binary_little_endian 1.0",
    n: str = "30",
    values: bytes = POINTS.tobytes(),
    properties: tuple[str, ...] = ("float x", "float y", "float z"),
) -> bytes:
    lines = ["ply", head, f"element vertex {n}", *(f"property {p}" for p in properties)]
    return "\n".join([*lines, "end_header\n"]).encode() + values


TEXT_POINTS = "".join(f"{x} {y} {z}\n" for x, y, z in POINTS.tolist()).encode()
ASCII = "format ascii 1.0"

PLY = [
    bad("empty", "c.ply", b"", "the file is empty"),
    bad("wrong magic", "c.ply", b"plx" + ply()[3:], 'a line "ply"'),
    bad("binary junk", "c.ply", bytes(range(256)), 'a line "ply"'),
    bad("only the magic", "c.ply", b"ply\n", "end_header"),
    bad("cut in the header", "c.ply", ply()[:50], "end_header"),
    bad("cut in the points", "c.ply", ply()[:-5], "cut-off copy"),
    bad("points too many", "c.ply", ply() + POINTS.tobytes(), "count too few"),
    bad("no points", "c.ply", ply(n="0", values=b""), "no points"),
    bad("negative", "c.ply", ply(n="-3"), "cannot read"),
    bad("a word for a number", "c.ply", ply(n="many"), "cannot read"),
    bad("terabytes", "c.ply", ply(n="999999999999"), "cut-off copy"),
    bad("beyond 64 bits", "c.ply", ply(n="9" * 30), "c.ply"),
    bad("unknown format", "c.ply", ply("format morse 1.0"), "cannot read"),
    bad("no format", "c.ply", ply("comment none"), "c.ply"),
    bad("unknown type", "c.ply", ply(properties=("float3 x",)), "cannot read the property"),
    bad("a name twice", "c.ply", ply(properties=("float x", "float x", "float z")), "same name"),
    bad("lists", "c.ply", ply(properties=("list uchar int x", "float y", "float z")), "lists"),
    bad("no vertices", "c.ply", ply().replace(b"vertex", b"face"), 'elements "vertex"'),
    bad("text, cut", "c.ply", ply(ASCII, values=TEXT_POINTS[:200]), "c.ply"),
    bad("text, a word", "c.ply", ply(ASCII, values=b"a" + TEXT_POINTS[1:]), "c.ply"),
    bad("NaN", "c.ply", ply(values=np.full((30, 3), np.nan, "<f4").tobytes()), "c.ply"),
    bad("no such field", "c.ply", ply(), "no column", "--columns", "x,intensity"),
]


def pcd(data: str = "binary", values: bytes = POINTS.tobytes(), **changes: str) -> bytes:
    entries = {
        "VERSION": "0.7",
        "FIELDS": "x y z",
        "SIZE": "4 4 4",
        "TYPE": "F F F",
        "COUNT": "1 1 1",
        "WIDTH": "30",
        "HEIGHT": "1",
        "VIEWPOINT": "0 0 0 1 0 0 0",
        "POINTS": "30",
    } | changes
    lines = [f"{key} {value}" for key, value in entries.items()]
    return "\n".join([*lines, f"DATA {data}\n"]).encode() + values


PACKED = struct.pack("<II", 300, 360) + b"\0" * 300

PCD = [
    bad("empty", "c.pcd", b"", "the file is empty"),
    bad("binary junk", "c.pcd", bytes(range(256)) * 4, "c.pcd"),
    bad("cut in the header", "c.pcd", pcd()[:60], "no line DATA"),
    bad("cut in the points", "c.pcd", pcd()[:-5], "cut-off copy"),
    bad("unknown data", "c.pcd", pcd("morse"), "DATA"),
    bad("sizes too few", "c.pcd", pcd(SIZE="4 4"), "same number"),
    bad("an odd size", "c.pcd", pcd(SIZE="3 3 3"), "is unknown"),
    bad("an unknown type", "c.pcd", pcd(TYPE="Q Q Q"), "is unknown"),
    bad("a count of nothing", "c.pcd", pcd(COUNT="0 1 1"), "COUNT"),
    bad("a count without end", "c.pcd", pcd(COUNT="1 1 99999999"), "COUNT"),
    bad("points contradict", "c.pcd", pcd(POINTS="31"), "contradicts"),
    bad("points negative", "c.pcd", pcd(POINTS="-30", WIDTH="-30"), "is not a count"),
    bad("no points", "c.pcd", pcd(POINTS="0", WIDTH="0", values=b""), "no points"),
    bad("terabytes", "c.pcd", pcd(POINTS="99999999999", WIDTH="99999999999"), "cut-off copy"),
    bad("a name twice", "c.pcd", pcd(FIELDS="x x z"), "same name"),
    bad("text, cut", "c.pcd", pcd("ascii", TEXT_POINTS[:200]), "c.pcd"),
    bad("text, a word", "c.pcd", pcd("ascii", b"a" + TEXT_POINTS[1:]), "c.pcd"),
    bad("compressed, cut", "c.pcd", pcd("binary_compressed", PACKED[:100]), "cut-off copy"),
    bad("compressed, junk", "c.pcd", pcd("binary_compressed", PACKED), "c.pcd"),
    bad(
        "compressed, a bomb",
        "c.pcd",
        pcd("binary_compressed", struct.pack("<II", 8, 2**32 - 1) + b"\0" * 8),
        "c.pcd",
    ),
    bad("NaN", "c.pcd", pcd(values=np.full((30, 3), np.nan, "<f4").tobytes()), "c.pcd"),
]

KITTI = [
    bad("empty", "k.bin", b"", "the file is empty"),
    bad("cut in a point", "k.bin", POINTS.tobytes()[:150], "not a whole number of points"),
    bad("junk", "k.bin", bytes(range(256)) * 4, "does not look like a KITTI scan"),
    bad("text", "k.bin", b"0123456789abcdef" * 9, "does not look like a KITTI scan"),
    bad("zeros", "k.bin", b"\0" * 1600, "does not look like a KITTI scan"),
]

CASES = [*ENVI, *PLY, *PCD, *KITTI]
