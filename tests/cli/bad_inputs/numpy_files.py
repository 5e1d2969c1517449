"""Damaged, foreign and hostile .npy and .npz files."""

import io
import struct
import zipfile

import numpy as np

from cli.bad_inputs._case import APPLY, ROWS, bad, npy, npz, packed_zeros, patched

GOOD = npy(ROWS)
START = len(GOOD) - ROWS.nbytes  # where the values begin


def with_header(text: str, values: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    header = text.encode("latin-1") + b"\n"
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", len(header))
    return b"\x93NUMPY" + version + size + header + values


def declared(shape: str, descr: str = "'<f8'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"


class _Bomb:
    def __reduce__(self):
        return print, ("a pickle ran",)


def array(values, dtype=None) -> bytes:
    return npy(np.asarray(values, dtype=dtype))


NPY = [
    bad("empty", "x.npy", b"", "the file is empty"),
    bad("one byte", "x.npy", b"\x93", "does not begin like a .npy file"),
    bad("cut in the magic", "x.npy", GOOD[:4], "does not begin like a .npy file"),
    bad("cut in the version", "x.npy", GOOD[:7], "header is damaged"),
    bad("cut in the header's length", "x.npy", GOOD[:9], "header is damaged"),
    bad("cut in the header", "x.npy", GOOD[:40], "header is damaged"),
    bad("cut after the header", "x.npy", GOOD[:START], "cut-off copy"),
    bad("cut in the values", "x.npy", GOOD[:-100], "cut-off copy"),
    bad("last byte missing", "x.npy", GOOD[:-1], "cut-off copy"),
    bad("a byte too many", "x.npy", GOOD + b"\0", "Save one array per file"),
    bad("two arrays", "x.npy", GOOD + GOOD, "Save one array per file"),
    bad("wrong magic", "x.npy", b"\x93NUMPI" + GOOD[7:], "does not begin like a .npy file"),
    bad("text", "x.npy", "1,2\n3,4\n", "does not begin like a .npy file"),
    bad("an archive", "x.npy", npz(a=ROWS), "does not begin like a .npy file"),
    bad("unknown version", "x.npy", GOOD[:6] + b"\x09\x00" + GOOD[8:], "header is damaged"),
    bad("header is a list", "x.npy", with_header("[1, 2]", b"\0" * 8), "header is damaged"),
    bad("header is code", "x.npy", with_header("__import__('os').abort()"), "header is damaged"),
    bad("no shape", "x.npy", with_header("{'descr': '<f8', 'fortran_order': False}"), "damaged"),
    bad("shape is a text", "x.npy", with_header(declared("'20, 4'")), "header is damaged"),
    bad("negative shape", "x.npy", with_header(declared("(-3, 4)"), b"\0" * 96), "no values"),
    bad("8 TB declared", "x.npy", with_header(declared("(1099511627776, 1)")), "8.8 TB"),
    bad("overflow", "x.npy", with_header(declared(f"({2**62}, {2**62})")), "cut-off copy"),
    bad("a header without end", "x.npy", with_header("{" * 60_000), "header is damaged"),
    bad("a nested header", "x.npy", with_header("(" * 5_000), "header is damaged"),
    bad("version 2, cut", "x.npy", with_header("{}", b"", b"\x02\x00")[:9], "header is damaged"),
    bad("unknown dtype", "x.npy", with_header(declared("(2, 2)", "'<q9'"), b"\0" * 36), "damaged"),
    bad("no rows", "x.npy", array(np.empty((0, 4))), "no values to read"),
    bad("no columns", "x.npy", array(np.empty((4, 0))), "no values to read"),
    bad("a number", "x.npy", array(1.0), "has 0 dimension(s)"),
    bad("a vector", "x.npy", array(np.ones(9)), "has 1 dimension(s)"),
    bad("four dimensions", "x.npy", array(np.ones((2, 2, 2, 2))), "has 4 dimension(s)"),
    bad("a pickle", "x.npy", npy(np.array([_Bomb()]), allow_pickle=True), "run any code"),
    bad("text values", "x.npy", array([["a", "b"]]), "not real numbers"),
    bad("complex", "x.npy", array([[1j, 2], [3, 4]]), "not real numbers"),
    bad("dates", "x.npy", array([["2020-01-01"]], "M8[D]"), "not real numbers"),
    bad("records", "x.npy", array([[(1, 2.0)]], "i4,f8"), "not real numbers"),
    bad("NaN", "x.npy", array([[1, 2], [np.nan, 4]]), "row 2, column 1"),
    bad("infinity", "x.npy", array([[1, 2], [3, -np.inf]]), "row 2, column 2"),
    bad("nothing but NaN", "x.npy", array(np.full((5, 3), np.nan)), "--nan drop-rows"),
    bad("all dropped", "x.npy", array(np.full((5, 3), np.nan)), "none would", "--nan", "drop-rows"),
    bad("no column left", "x.npy", array(np.full((5, 3), np.nan)), "none", "--nan", "drop-cols"),
    bad("one row left", "x.npy", array([[1, 2], [3, np.nan]]), "only one", "--nan", "drop-rows"),
    bad("one row", "x.npy", array([[1, 2, 3]]), "has only one row"),
    bad("zeros", "x.npy", array(np.zeros((5, 3))), "zero"),
    bad("a choice of one", "x.npy", GOOD, "Leave it out", "--variable", "a"),
    bad("no such column", "x.npy", GOOD, 'no column "7"', "--columns", "1,7"),
    bad("an image of NaN", "x.npy", array(np.full((3, 4, 5), np.nan)), "all of its 12 pixels"),
]


# -- archives --------------------------------------------------------------------------------------

TWO = npz(a=ROWS, b=ROWS + 1)
ARCHIVE = npz(a=ROWS)


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def bomb() -> bytes:
    """0.1 MB that would become 128 MiB."""
    start, n = with_header(declared(f"({2**24}, 1)")), 2**27
    data, name, size = packed_zeros(start, n, raw=True), b"a.npy", len(start) + n
    sizes = struct.pack("<IIIHH", 0, len(data), size, len(name), 0)  # the checksum comes too late
    middle = struct.pack("<HHHHH", 20, 0, 8, 0, 33) + sizes
    local = b"PK\3\4" + middle + name + data
    entry = b"PK\1\2" + struct.pack("<H", 20) + middle + bytes(14) + name
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0)
    return local + entry + end


def twice() -> bytes:
    """Two members of one name; zipfile warns about it, so the second one is renamed afterwards."""
    return zipped({"a.npy": GOOD, "b.npy": GOOD}).replace(b"b.npy", b"a.npy")


NPZ = [
    bad("empty", "x.npz", b"", "the file is empty"),
    bad("junk", "x.npz", b"junk" * 50, "not a readable .npz"),
    bad("an array", "x.npz", GOOD, "not a readable .npz"),
    bad("cut at the start", "x.npz", ARCHIVE[:20], "not a readable .npz"),
    bad("cut in the values", "x.npz", ARCHIVE[:400], "not a readable .npz"),
    bad("cut in the directory", "x.npz", ARCHIVE[:-30], "not a readable .npz"),
    bad("last byte missing", "x.npz", ARCHIVE[:-1], "not a readable .npz"),
    bad("first half missing", "x.npz", ARCHIVE[400:], "x.npz"),
    bad("no members", "x.npz", zipped({}), "no array in this archive"),
    bad("no arrays", "x.npz", zipped({"readme.txt": b"hello"}), "no array in this archive"),
    bad("a damaged member", "x.npz", zipped({"a.npy": b"junk"}), "does not begin like a .npy"),
    bad("a cut member", "x.npz", zipped({"a.npy": GOOD[:-8]}), "cut-off copy"),
    bad("a member that lies", "x.npz", zipped({"a.npy": with_header(declared("(9, 9)"))}), "648"),
    bad("damaged values", "x.npz", patched(ARCHIVE, ROWS.tobytes()[:8], b"\1" * 8), "CRC"),
    bad("bomb", "x.npz", bomb(), "more than 100 times"),
    bad(
        "pickle", "x.npz", zipped({"a.npy": npy(np.array([_Bomb()]), allow_pickle=True)}), "pickle"
    ),
    bad("several", "x.npz", TWO, "--variable="),
    bad("a name not there", "x.npz", TWO, 'no array "c"', "--variable", "c"),
    bad("an empty name", "x.npz", TWO, 'no array ""', "--variable", ""),
    bad("a text is chosen", "x.npz", npz(a=ROWS, t=np.array("x")), "real", "--variable", "t"),
    bad("the same name twice", "x.npz", twice(), "two arrays"),
    bad("bzip2", "x.npz", zipped({"a.npy": GOOD}, zipfile.ZIP_BZIP2), "does not use"),
    bad("lzma", "x.npz", zipped({"a.npy": GOOD}, zipfile.ZIP_LZMA), "does not use"),
    bad("an archive inside", "x.npz", zipped({"a.npy": ARCHIVE}), "does not begin like a .npy"),
    bad("vectors only", "x.npz", npz(a=np.ones(3), b=np.ones(4)), "2 or 3 dimensions"),
    bad("gaps", "x.npz", npz(a=np.where(ROWS > 1, np.nan, ROWS)), "--nan"),
    bad("too narrow for the model", "x.npz", npz(a=ROWS[:, :3]), "fitted to 4", command=APPLY),
    bad("too wide for the model", "x.npz", npz(a=np.ones((3, 9))), "fitted to 4", command=APPLY),
    bad("gaps for a model", "x.npz", npz(a=ROWS * np.nan), "--nan", command=APPLY),
    bad("inspected", "x.npz", b"PK\x03\x04junk", "not a readable", command=("inspect", "{}")),
    bad("compared", "x.npz", b"PK\x03\x04junk", "not a readable", command=("compare", "{}")),
]

CASES = [*NPY, *NPZ]
