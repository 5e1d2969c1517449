"""Carry out one case of the catalogue, in whichever process this is."""

import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from cli.bad_inputs._case import ROWS, Case
from perpend.cli import main

NOBODY = 65534


class Done(NamedTuple):
    """How a command ended, and what it left behind."""

    code: int
    out: str
    err: str
    left: list[str]  # new files


def make_models(folder: Path) -> None:
    """Two good models: of 4 columns without names, and of 6 with names."""
    import numpy as np

    from perpend import RSGM

    RSGM(1).fit(ROWS).save(folder / "model.npz")
    wide = RSGM(1).fit(np.hstack([ROWS, ROWS[:, :2]]))
    wide.feature_names_in_ = np.array([f"B{i + 1}" for i in range(6)], dtype=object)
    wide.save(folder / "named.npz")


def carry_out(case: Case, models: Path) -> Done:
    """Run the command in a fresh folder."""
    if case.forbidden and os.geteuid() == 0:
        # Once as root, so that everything is imported: Python itself may be out of bounds later.
        _carry_out(case._replace(forbidden=False), models)
    return _carry_out(case, models)


def _carry_out(case: Case, models: Path) -> Done:
    with tempfile.TemporaryDirectory(prefix="bad-input-") as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "tmp").mkdir()
        for model in models.iterdir():
            shutil.copy(model, folder)
        stack.enter_context(chdir(folder))
        stack.enter_context(patch.object(tempfile, "tempdir", str(folder / "tmp")))
        stack.callback(_unlock, folder)
        if case.make is not None:
            case.make(Path(case.path))
        if case.without:
            stack.enter_context(patch.dict(sys.modules, dict.fromkeys(case.without.split())))
        if case.stdin is not None:
            stdin: Any = io.TextIOWrapper(io.BytesIO(case.stdin))
            stack.enter_context(patch.object(sys, "stdin", stdin))
        before = _files(folder)
        if case.forbidden:
            stack.enter_context(_ordinary_user(folder))
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(list(case.args))
        return Done(code, out.getvalue(), err.getvalue(), sorted(_files(folder) - before))


def problems(case: Case, done: Done) -> list[str]:
    """What is not as the catalogue says."""
    lines = done.err.splitlines()
    checks = {
        f"exit code {done.code} instead of {case.code}": done.code == case.code,
        f"{case.says!r} is not said": case.says in done.err,
        "not exactly one line": len(lines) == 1,
        "not an error": done.err.startswith("error: "),
        "a traceback": "Traceback" not in done.err,
        "an escape": "\x1b" not in done.err,
        "not this on stdout": done.out == "" or "--json" in case.args,
        "not this object on stdout": "--json" not in case.args or _is_the_error(done),
        f"left {done.left}": not done.left,
        "too long": len(done.err) < 1000 or len(" ".join(case.args)) > 200,
    }
    return [problem for problem, fine in checks.items() if not fine]


def _is_the_error(done: Done) -> bool:
    """Whether stdout is one JSON object that says the same as stderr."""
    said = {"error": done.err.removeprefix("error: ").removesuffix("\n"), "exit_code": done.code}
    return bool(json.loads(done.out) == said)


@contextmanager
def _ordinary_user(folder: Path) -> Iterator[None]:
    """Give up the administrator's rights: nothing is forbidden to root."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, folder / "tmp"):
        os.chown(path, NOBODY, NOBODY)
    for path in folder.iterdir():
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def _files(folder: Path) -> set[str]:
    found = set()
    for place, folders, files in os.walk(folder):
        found |= {os.path.relpath(Path(place) / name, folder) for name in [*folders, *files]}
    return found


def _unlock(folder: Path) -> None:
    for place, folders, _ in os.walk(folder):
        for name in folders:
            (Path(place) / name).chmod(0o755)
