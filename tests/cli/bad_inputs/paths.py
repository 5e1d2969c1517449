"""Inputs that are no files, and places that cannot take results."""

import os
import socket
from pathlib import Path

from cli.bad_inputs._case import FIT, NO_PERMISSION, Case, bad, usage
from cli.bad_inputs.text_files import GOOD


def folder(path: Path) -> None:
    path.mkdir()


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def to(target: str):
    return lambda path: path.symlink_to(target)


def locked(path: Path) -> None:
    path.write_text(GOOD, encoding="utf-8")
    path.chmod(0)


def locked_folder(path: Path) -> None:
    folder(path)
    (path / "x.csv").write_text(GOOD, encoding="utf-8")
    path.chmod(0)


LONG = "n" * 300 + ".csv"
INPUTS = [
    bad("missing", "no.csv", None, "no such file"),
    bad("missing folder", "no/where.csv", None, "no such file"),
    bad("a folder", "d.csv", folder, "is a directory"),
    bad("the current folder", ".", None, "directory"),
    bad("below a file", "x.csv/y.csv", lambda path: path.parent.write_text(GOOD), "y.csv"),
    bad("a pipe", "p.csv", os.mkfifo, "not a regular file"),
    bad("a socket", "s.csv", listening, "not a regular file"),
    bad("a device", "/dev/zero", None, "/dev/zero"),
    bad("a device of a format", "/dev/zero", None, "not a regular file", "--format", "csv"),
    bad("a broken link", "l.csv", to("nowhere.csv"), "no such file"),
    bad("a link to itself", "l.csv", to("l.csv"), "l.csv"),
    bad("a very long name", LONG, None, "nnn.csv"),
    bad("a very long path", "d/" * 2500 + "x.csv", None, "x.csv"),
    bad("NUL in the name", "a\0b.csv", None, "null", code=2),
    bad("an escape in the name", "a\x1b[31m.csv", None, "\\x1b[31m.csv: no such file"),
    bad("a new line in the name", "a\nb.csv", None, "no such file"),
    bad("not ASCII", "größe-数据.csv", None, "no such file"),
    bad("not ASCII, and bad", "größe-数据.csv", "a,b\n1,x\n2,3\n", '"x"'),
    bad("not Unicode", "\udcff.csv", None, "no such file"),
    bad("no suffix", "data", GOOD, 'type ""'),
    bad("unknown suffix", "data.xls", "1", 'type ".xls"'),
    bad("a pickle", "data.pkl", b"\x80\x04.", 'type ".pkl"'),
    bad("a hidden file", ".csv", GOOD, "cannot read files of type"),
    bad("a backup", "x.csv~", GOOD, "cannot read files of type"),
    bad(NO_PERMISSION, "secret.csv", locked, "Check its permissions"),
    bad(NO_PERMISSION, "secret.npy", locked, "Check its permissions"),
    bad(NO_PERMISSION, "vault/x.csv", lambda path: locked_folder(path.parent), "permissions"),
    bad("inspected", "no.csv", None, "no such file", command=("inspect", "{}")),
    bad("compared", "no.csv", None, "no such file", command=("compare", "{}")),
    bad(
        "applied to",
        "no.csv",
        None,
        "no such file",
        command=("apply", "model.npz", "{}", *FIT[2:4]),
    ),
]


# -- where results should go -----------------------------------------------------------------------


def output(what: str, out: str, make, says: str, *options: str, code: int = 2) -> Case:
    args = ("fit", "x.csv", "-o", out, "--no-report", *options)

    def prepare(path: Path) -> None:
        path.write_text(GOOD, encoding="utf-8")
        if make is not None:
            make(Path(out))

    return Case(f"output: {what}", args, code, says, prepare, "x.csv", forbidden=code == 5)


def with_file(name: str):
    def make(path: Path) -> None:
        path.mkdir()
        (path / name).write_text("mine", encoding="utf-8")

    return make


def with_folder(name: str):
    return lambda path: (path / name).mkdir(parents=True)


def read_only(path: Path) -> None:
    path.mkdir()
    path.chmod(0o555)


OUTPUTS = [
    output("results are there", "res", with_file("result.json"), "already has result.json"),
    output("labels are there", "res", with_file("labels.csv"), "already has labels.csv"),
    output("a model is there", "res", with_file("model.npz"), "already has model.npz"),
    output(
        "labelled rows are there", "res", with_file("x-labelled.csv"), "already has x-labelled.csv"
    ),
    output("a folder in the way", "res", with_folder("labels.csv"), "is a folder", "--force"),
    output("a file", "res", lambda path: path.write_text("mine"), "is a file"),
    output("below a file", "x.csv/res", None, "is a file"),
    output("a broken link", "res", to("no/where"), "res", code=2),
    output("a very long name", "n" * 300, None, "nnn", code=2),
    output("NUL in the name", "a\0b", None, "null"),
    output("a link to itself", "res", to("res"), "broken link"),
    output("read-only", "res", read_only, "Permission denied", code=5),
    output(
        "below a read-only folder",
        "res/deep/er",
        lambda path: read_only(Path("res")),
        "Permission denied",
        code=5,
    ),
    output("the kernel's", "/proc/perpend", None, "/proc", code=5),
    usage("the input itself", "fit labels.csv -o . --force --no-report", "no such file", code=3),
]

CASES = [*INPUTS, *OUTPUTS]
