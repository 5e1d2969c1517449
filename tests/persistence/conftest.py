"""A fitted model and its file."""

import pytest

from model_files import DATA
from perpend import DPCP


@pytest.fixture(scope="module")
def fitted():
    return DPCP(random_state=0).fit(DATA.X)


@pytest.fixture
def path(fitted, tmp_path):
    """A file with a good model."""
    file = tmp_path / "model.npz"
    fitted.save(file)
    return file
