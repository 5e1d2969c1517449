"""The check for NaN and infinite entries, block by block."""

import numpy as np
import pytest

from perpend.rows import finite
from perpend.rows.finite import NotFinite, not_finite


@pytest.fixture(params=[1, 12, 2**16])
def block_entries(request, monkeypatch):
    """Entries in one block."""
    monkeypatch.setattr(finite, "ENTRIES", request.param)
    monkeypatch.setattr(finite, "ENTRIES_OF_TENSOR", request.param)


@pytest.mark.parametrize("row", range(10))
def test_the_first_is_found_and_all_are_counted(xp, block_entries, row, dtype) -> None:
    X = np.ones((10, 4), dtype)
    X[row:, 1] = np.nan
    X[row, 2] = np.inf
    assert not_finite(xp.array(X)) == NotFinite(row, 1, True, 11 - row, 10 - row)
    X[row, 0] = -np.inf
    assert not_finite(xp.array(X)) == NotFinite(row, 0, False, 12 - row, 10 - row)


def test_there_may_be_none(xp, block_entries, dtype) -> None:
    largest = np.finfo(dtype).max  # sums of such entries are infinite, and the entries are not
    assert not_finite(xp.array(np.full((10, 4), largest))) is None
    assert not_finite(xp.array(np.ones((0, 4), dtype))) is None
