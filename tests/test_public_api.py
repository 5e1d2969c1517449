"""The public face: names, laziness, and what importing costs."""

import subprocess
import sys

import pytest

import perpend


@pytest.mark.parametrize("name", perpend.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(perpend, name) is not None
    assert name in dir(perpend)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'dpc'"):
        perpend.dpc  # noqa: B018


def test_importing_perpend_is_instant() -> None:
    code = (
        "import sys, perpend; "
        "heavy = {'numpy', 'scipy', 'sklearn', 'torch', 'dask', 'matplotlib', 'pandas', 'typer'}; "
        "print(*heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == []
