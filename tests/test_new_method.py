"""Adding a method is one file and one line: proved with a toy, in a copy of the package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from perpend.datasets import make_subspace

ROOT = Path(__file__).parents[1]
LEAVE = shutil.ignore_patterns(
    "__pycache__", "data", "found", "bad_inputs", "_build", "gallery", "generated"
)
LINE = '    "PlainPCA": "plain_pca",\n'
FILE = '''"""Principal component analysis: the axes of least variance are the normals."""

import numpy as np

from perpend._capabilities import Capabilities
from perpend.estimator import SubspaceEstimator
from perpend.solvers import Directions, spectral_starts
from perpend.structure import solve_fixed


def plain_pca(rows, *, codimension=1, rng, callback=None):
    """Return the subspace of the given codimension; the parameters are those of `PlainPCA`.

    Parameters
    ----------
    rows : RowSource
    codimension, callback
        As in `PlainPCA`.
    rng : numpy.random.Generator

    Returns
    -------
    Solution
    """

    def find(rows, span, c):
        V, one = spectral_starts(span, c), np.ones(1)
        return Directions(V, one, one.astype(int), one > 0, 0.0, 1)

    return solve_fixed(rows, codimension, find, rng)


class PlainPCA(SubspaceEstimator):
    """Principal component analysis, which outliers turn."""

    capabilities = Capabilities(iterates=False)
    _function = staticmethod(plain_pca)
'''
COMMON = ("test_common.py", "test_citizenship.py", "test_estimator.py", "test_public_api.py")
COMMON += ("persistence/test_save_and_load.py", "methods/test_affine.py")
RELEASED = {  # tests of the methods that have a card; of the last file, only those
    "methods/test_claims.py": (),
    "experiments/test_stored.py": (),
    "test_docs.py": ("-k", "card or cited or reference"),
}


@pytest.fixture(scope="module", name="copy")
def a_copy_with_one_file_more(tmp_path_factory):
    """The checkout as far as it is needed, with the file of the method but not its line."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "src", folder / "src", ignore=LEAVE)
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=LEAVE)
    shutil.copytree(ROOT / "studies", folder / "studies", ignore=LEAVE)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=LEAVE)
    for name in ("pyproject.toml", "conftest.py", "README.md"):
        shutil.copy(ROOT / name, folder)
    (folder / "src" / "perpend" / "methods" / "plain_pca.py").write_text(FILE, encoding="utf-8")
    return folder


def python(folder, *arguments):
    paths = [str(folder / "src"), str(folder / "docs" / "_ext")]
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def pytest_in(folder, *arguments):
    return python(folder, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *arguments)


@pytest.mark.slow
def test_a_method_is_one_file_and_one_line(copy):
    """The tests are in one, as each works with what the one before has made."""
    check = "tests/test_public_api.py::test_every_file_of_a_method_has_its_line"
    done = pytest_in(copy, check)
    assert done.returncode == 1, done.stdout  # the line is missing
    assert "plain_pca" in done.stdout

    home = copy / "src" / "perpend" / "__init__.py"
    code = home.read_text(encoding="utf-8")
    home.write_text(code.replace('    "DPCP": "dpcp",\n', '    "DPCP": "dpcp",\n' + LINE, 1))
    assert pytest_in(copy, check).returncode == 0

    done = pytest_in(copy, "-k", "PlainPCA", *(f"tests/{name}" for name in COMMON))
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split(" passed")[0].split()[-1]) > 60  # most are scikit-learn's

    for name, which in RELEASED.items():
        done = pytest_in(copy, f"tests/{name}", *which)
        assert done.returncode == 0, done.stdout

    X = make_subspace(60, 20, n_features=5, codimension=2, noise=0.01, random_state=0).X
    rows = "\n".join(",".join(map(repr, row)) for row in X.tolist())
    (copy / "rows.csv").write_text(rows, encoding="utf-8")
    done = python(copy, "-m", "perpend", "compare", "rows.csv", "--affine", "no", "--json")
    assert done.stdout, done.stderr
    compared = {row["method"]: row for row in json.loads(done.stdout)["methods"]}
    assert compared["PlainPCA"]["codimension"] == 2
    assert compared["PlainPCA"]["problem"] is None

    code = "from pathlib import Path; import method_rows as m; p = Path('docs/methods'); "
    done = python(copy, "-c", code + "print(*m.check(p), *m.table(p), sep='\\n')")
    cells = ["`PlainPCA`", "Principal component analysis, which outliers turn"]
    last = f"| {' | '.join([*cells, 'codimension or dimension'])} |"
    assert done.stdout.splitlines()[-1].startswith(last), done.stdout + done.stderr
