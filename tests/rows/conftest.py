"""Fixtures of the tests of rows."""

import pytest

from perpend.kernels import compiled


@pytest.fixture(params=["compiled", "numpy"])
def path(request, monkeypatch):
    """One of the two ways to sum the kernel that has a compiled twin."""
    if request.param == "compiled" and not compiled.available():
        pytest.skip("no compiled library in use")
    monkeypatch.setenv("PERPEND_COMPILED", "1" if request.param == "compiled" else "0")
    return request.param
