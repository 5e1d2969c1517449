"""The public face: names, laziness, and what importing costs."""

import subprocess
import sys
from pathlib import Path

import pytest

import perpend

METHODS = Path(perpend.__file__).parent / "methods"


def test_every_file_of_a_method_has_its_line() -> None:
    """A method that nobody imports is in no registry, so it is the files that are looked at."""
    files = {path.stem for path in METHODS.glob("*.py")} - {"__init__"}
    assert files == {*perpend._METHODS.values(), *perpend._LABELS_ONLY.values()}


@pytest.mark.parametrize(("name", "module"), (perpend._METHODS | perpend._LABELS_ONLY).items())
def test_a_method_is_a_class_and_a_function_named_like_its_file(name: str, module: str) -> None:
    for public in (name, module):
        found = getattr(perpend, public)
        assert (found.__module__, found.__name__) == (f"perpend.methods.{module}", public)


@pytest.mark.parametrize("name", perpend.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(perpend, name) is not None
    assert name in dir(perpend)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'dpc'"):
        perpend.dpc  # noqa: B018


def test_a_method_does_not_import_the_others() -> None:
    code = (
        "import sys; from perpend import DPCP, dpcp; assert callable(dpcp); "
        "print(*sorted(name for name in sys.modules if name.startswith('perpend.methods.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout.split()) == ("", ["perpend.methods.dpcp"])


def test_importing_perpend_is_instant() -> None:
    code = (
        "import sys, perpend; "
        "heavy = {'numpy', 'scipy', 'sklearn', 'torch', 'dask', 'matplotlib', 'pandas', 'typer'}; "
        "print(*heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == []
