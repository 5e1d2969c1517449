"""A good table and a way to run commands, for all tests of the command line."""

import tempfile
from typing import NamedTuple

import numpy as np
import pytest

from perpend.cli import main
from perpend.datasets import make_subspace

COLUMNS = ["B1", "B2", "B3", "B4", "B5", "B6"]


@pytest.fixture(scope="session")
def data():
    """Rows on a subspace of codimension 2, with 80 outliers."""
    return make_subspace(120, 80, n_features=6, codimension=2, noise=0.01, random_state=0)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty folder that is the current one; logs of errors go there, too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path


@pytest.fixture
def csv(home, data):
    """A good table in the current folder."""
    np.savetxt("scan.csv", data.X, delimiter=",", header=",".join(COLUMNS), comments="")
    return "scan.csv"


class Done(NamedTuple):
    """What a command has left."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Run a command in this process; returns exit code, stdout and stderr."""

    def call(*args):
        code = main([str(arg) for arg in args])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Done(code, captured.out, captured.err)

    return call
