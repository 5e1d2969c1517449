"""What the tests share: assertions, each of which raises, and marks of slow parameters."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import perpend
from perpend import DPCP
from perpend.datasets import SubspaceData, make_subspace
from perpend.exceptions import CodimensionWarning, InputError, PerpendError
from perpend.formats import read
from perpend.structure import SURE


def assert_same_subspace(A, B, tol=1e-10):
    """Two row bases span the same subspace: the sine of the largest angle is at most `tol`.

    Bases themselves are never compared, as sign and rotation are arbitrary.
    """
    A, B = np.atleast_2d(np.asarray(A, float)), np.atleast_2d(np.asarray(B, float))
    assert A.shape == B.shape, f"bases of shapes {A.shape} and {B.shape}"
    if A.shape[0] == 0:
        return
    A, B = np.linalg.qr(A.T)[0], np.linalg.qr(B.T)[0]
    sine = np.linalg.norm(B - A @ (A.T @ B), 2)
    assert sine <= tol, f"sine of the largest angle is {sine:.2e}, more than {tol:.2e}"


def assert_orthonormal_rows(A, tol=1e-12):
    """The rows are unit vectors, orthogonal to one another."""
    A = np.asarray(A)
    np.testing.assert_allclose(A @ A.T, np.eye(A.shape[0]), rtol=0, atol=tol)


def assert_sure(found):
    """The result is sure, with every subspace of it; return it.

    For a test that claims a right result: no test may pass if nothing were ever sure.
    """
    for one in getattr(found, "subspaces", [found]):
        confidence = one.confidence_ if hasattr(one, "confidence_") else one.confidence
        assert confidence >= SURE, f"confidence {confidence:.3f}: {getattr(one, 'doubts_', one)}"
    return found


def refused(path, message, error=InputError, reader=read, **kwargs):
    """The file is refused in one printable line that names it; returns that line."""
    with pytest.raises(error, match=message) as caught:
        reader(path, **kwargs)
    assert isinstance(caught.value, PerpendError)
    assert isinstance(caught.value, ValueError)
    text = str(caught.value)
    assert str(path) in text
    assert text.isprintable()
    return text


def mostly_slow(values, *quick):
    """Parameters of a sweep: those in `quick` are always tried, the others are marked as slow."""
    assert set(quick) <= set(values)
    return [v if v in quick else pytest.param(v, marks=pytest.mark.slow) for v in values]


def draw(n_features: int, codimension: int, n_inliers: int, r: float, **kwargs) -> SubspaceData:
    """Data with a share r of outliers."""
    n_outliers = round(n_inliers * r / (1 - r))
    return make_subspace(
        n_inliers, n_outliers, n_features=n_features, codimension=codimension, **kwargs
    )


def quiet(X, **how):
    """A fit of DPCP that may be unsure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CodimensionWarning)
        return DPCP(random_state=0, **how).fit(X)


CARDS = {page.stem for page in (Path(__file__).parents[1] / "docs" / "methods").glob("*.md")} - {
    "index"
}
"""Methods that are released: those that have a card in the documentation. Others may be new."""

PUBLISHED = tuple(
    name for name in perpend._METHODS if getattr(perpend, name).capabilities.tolerates_most
)
"""Methods that find a subspace of small codimension though most rows are outliers, step by step.
Other methods in the registry need not do so."""
