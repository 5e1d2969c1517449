"""Models and folders of results that are damaged, foreign or hostile, and MATLAB files."""

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import scipy.io

from cli.bad_inputs._case import APPLY, ROWS, Case, Make, bad, npy, npz, packed_zeros
from cli.bad_inputs.numpy_files import _Bomb

# -- models ----------------------------------------------------------------------------------------


def damaged(change) -> Make:
    """Change the bytes of the good model."""

    def make(path: Path) -> None:
        path.write_bytes(change(Path("model.npz").read_bytes()))
        Path("rows.npy").write_bytes(npy(ROWS))

    return make


def rewritten(change, method: int = zipfile.ZIP_STORED) -> Make:
    """Change the members of the good model."""

    def new(data: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        change(members)
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", method) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return stream.getvalue()

    return damaged(new)


def header(**changes) -> Make:
    """Change the header of the good model."""

    def change(members: dict[str, bytes]) -> None:
        text = np.load(io.BytesIO(members["header.npy"])).tobytes()
        new = json.dumps({**json.loads(text), **changes}).encode()
        members["header.npy"] = npy(np.frombuffer(new, np.uint8))

    return rewritten(change)


def model(what: str, make: Make, says: str, path: str = "bad.npz") -> Case:
    return bad(what, path, make, says, command=("apply", "{}", "rows.npy", *APPLY[3:]))


def folder(path: Path) -> None:
    path.mkdir()


MODELS = [
    model("missing", lambda path: None, "no such file", "no.npz"),
    model("an empty folder", folder, "bad", "bad"),
    model("empty", damaged(lambda data: b""), "not a readable model file"),
    model("junk", damaged(lambda data: b"junk" * 30), "not a readable model file"),
    model("text", damaged(lambda data: b"a,b\n1,2\n"), "not a readable model file"),
    model("cut in half", damaged(lambda data: data[: len(data) // 2]), "not a readable model file"),
    model("last byte missing", damaged(lambda data: data[:-1]), "not a readable model file"),
    model("an array", damaged(lambda data: npy(ROWS)), "not a readable model file"),
    model("rows instead", damaged(lambda data: npz(a=ROWS)), "no header"),
    model("a byte changed", damaged(lambda data: data[:900] + b"\xff" + data[901:]), "bad.npz"),
    model("newer", header(schema=99), "Upgrade perpend"),
    model("a strange schema", header(schema="two"), "bad.npz"),
    model("of another program", header(format="something"), "not a model that perpend wrote"),
    model("an unknown method", header(**{"class": "Magic"}), "not a method of perpend"),
    model("a class from elsewhere", header(**{"class": "os.system"}), "not a method of perpend"),
    model("parameters changed", header(parameters={}), "checksum differs"),
    model(
        "an array too many", rewritten(lambda m: m.update({"x.npy": npy(ROWS)})), "Save it again"
    ),
    model("an array missing", rewritten(lambda m: m.pop(list(m)[-1])), "Save it again"),
    model("a foreign member", rewritten(lambda m: m.update({"x.txt": b"hi"})), "does not write"),
    model("compressed", rewritten(lambda m: None, zipfile.ZIP_DEFLATED), "is compressed"),
    model(
        "a pickle",
        rewritten(
            lambda m: m.update({list(m)[-1]: npy(np.array([_Bomb()]), allow_pickle=True)}),
        ),
        "bad.npz",
    ),
]


# -- folders of results ----------------------------------------------------------------------------


def results(*names: str, text: str = "junk") -> Make:
    def make(path: Path) -> None:
        path.mkdir()
        for name in names:
            (path / name).write_text(text, encoding="utf-8")

    return make


REPORT = ("report", "{}")
ALL = ("result.json", "model.npz", "labels.csv")
FACTS = "report.json"
REPORTS = [
    bad("missing", "no", None, "no such folder", command=REPORT),
    bad("a file", "r", b"x", "is a file", command=REPORT),
    bad("an empty folder", "r", results(), "has neither report.json nor model.npz", command=REPORT),
    bad("labels only", "r", results(*ALL[::2]), "has neither report.json", command=REPORT),
    bad("a report", "r", results(*ALL, "report.html"), "already has", code=2, command=REPORT),
    bad("nothing but junk", "r", results(*ALL), "r/model.npz", command=REPORT),
    bad("facts are junk", "r", results(FACTS), "r/report.json: is not JSON", command=REPORT),
    bad("facts are a list", "r", results(FACTS, text="[1]"), "no JSON object", command=REPORT),
    bad("facts of nothing", "r", results(FACTS, text="{}"), "r/report.json", command=REPORT),
    bad("newer facts", "r", results(FACTS, text='{"schema": 99}'), "schema 99", command=REPORT),
    bad("nested facts", "r", results(FACTS, text="[" * 99_999), "is not JSON", command=REPORT),
]


# -- MATLAB ----------------------------------------------------------------------------------------


def mat(**arrays) -> bytes:
    stream = io.BytesIO()
    scipy.io.savemat(stream, arrays)
    return stream.getvalue()


MAT_FILE = mat(a=ROWS)


def mat_bomb() -> bytes:
    """0.1 MB that would become 128 MiB."""
    n = 2**27
    flags = struct.pack("<IIII", 6, 8, 6, 0)  # an array of doubles
    shape = struct.pack("<IIII", 5, 8, 2**12, 2**12)
    start = flags + shape + struct.pack("<HH4sII", 1, 1, b"a", 9, n)
    data = packed_zeros(struct.pack("<II", 14, len(start) + n) + start, n)
    return MAT_FILE[:128] + struct.pack("<II", 15, len(data)) + data


def mat_cell() -> bytes:
    cells = np.empty((1, 2), object)
    cells[0, 0], cells[0, 1] = ROWS, ROWS
    return mat(a=cells)


MAT = [
    bad("empty", "m.mat", b"", "the file is empty"),
    bad("junk", "m.mat", b"junk" * 50, "does not begin like a MATLAB file"),
    bad("cut in the magic", "m.mat", MAT_FILE[:60], "does not begin like a MATLAB file"),
    bad("cut after the magic", "m.mat", MAT_FILE[:128], "no array"),
    bad("cut in the header", "m.mat", MAT_FILE[:150], "cut-off copy"),
    bad("cut in the values", "m.mat", MAT_FILE[:-100], "cut-off copy"),
    bad(
        "a variable that lies",
        "m.mat",
        MAT_FILE[:128] + struct.pack("<II", 14, 2**31) + MAT_FILE[136:],
        "cut-off copy",
    ),
    bad("bomb", "m.mat", mat_bomb(), "100 times"),
    bad("complex", "m.mat", mat(a=ROWS * 1j), "complex"),
    bad("text", "m.mat", mat(a="hello"), "char"),
    bad("cells", "m.mat", mat_cell(), "cell"),
    bad("a structure", "m.mat", mat(a={"b": ROWS}), "struct"),
    bad("several", "m.mat", mat(a=ROWS, b=ROWS), "--variable="),
    bad("a name not there", "m.mat", mat(a=ROWS, b=ROWS), 'no array "c"', "--variable", "c"),
    bad("NaN", "m.mat", mat(a=ROWS * np.nan), "--nan"),
]

CASES = [*MODELS, *REPORTS, *MAT]
