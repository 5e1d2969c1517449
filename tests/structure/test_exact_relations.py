"""Relations that hold exactly for all rows, as that of a total, hide no relation with noise."""

import numpy as np
import pytest

import perpend
from helpers import mostly_slow, quiet
from perpend import DPCP
from perpend.datasets import make_subspace

EXACT = {  # columns that follow from the others
    "total": lambda R: np.c_[R, R.sum(1)],
    "kg and lb": lambda R: np.c_[R, 2.2046 * R[:, 0]],
    "zeros": lambda R: np.c_[R, np.zeros(len(R))],
    "subtotals": lambda R: np.c_[R, R[:, :4].sum(1), R[:, 4:].sum(1), R.sum(1)],
}


@pytest.mark.parametrize("affine", mostly_slow([False, True, "auto"], True))
@pytest.mark.parametrize("name", EXACT)
def test_a_relation_with_noise_is_found_beside_exact_ones(name, affine, seed):
    data = make_subspace(700, 500, n_features=10, codimension=3, noise=0.01, random_state=seed)
    X = EXACT[name](data.X)
    n_exact = X.shape[1] - 10
    model = DPCP(affine=affine, random_state=seed).fit(X)
    assert model.codimension_ == 3 + n_exact
    assert model.confidence_ >= 0.95
    assert np.mean(model.labels_ == data.y) > 0.99
    # every row keeps the exact relations, and the inliers keep the others
    assert np.linalg.norm(X @ model.normals_.T, axis=1)[data.y == 1].max() < 0.1
    assert np.linalg.matrix_rank(X - X @ model.normals_.T @ model.normals_, tol=1e-8) == 7


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", ["gauss", "box", "student", "decay"])
def test_a_smooth_cloud_on_a_hyperplane_has_no_smaller_subspace(shape, affine, seed):
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1, 1, (1500, 5)) if shape == "box" else rng.standard_normal((1500, 5))
    if shape == "student":
        Z /= np.sqrt(rng.chisquare(4, (1500, 1)) / 4)
    if shape == "decay":
        Z *= 0.7 ** np.arange(5)
    model = quiet(np.c_[Z, Z.sum(1)], affine=affine)
    assert model.codimension_ == 1
    assert np.all(model.labels_ == 1)
    long_rows = shape == "student" and affine
    assert model.confidence_ >= 0.95 or long_rows


@pytest.mark.parametrize("affine", [False, True])
def test_what_is_not_sure_inside_is_said_and_can_be_chosen(affine, tmp_path):
    data = make_subspace(300, 400, n_features=8, codimension=2, noise=0.3, random_state=1)
    model = quiet(EXACT["total"](data.X), affine=affine)
    assert model.codimension_ == 1  # which is certain
    assert model.noise_ == 0
    assert model.confidence_ < 0.95
    assert "may also lie near a subspace of codimension 3" in model.doubts_[0]
    assert f"choose({place_of(model, 3)})" in model.doubts_[0]
    assert model.structures_[place_of(model, 1)]["chosen"]
    model.save(tmp_path / "model.npz")
    for own in (model, perpend.load(tmp_path / "model.npz")):
        inner = own.choose(place_of(own, 3))
        assert inner.codimension_ == 3
        assert 0.7 < np.mean(inner.labels_ == data.y) < 1
        back = inner.choose(place_of(own, 1))
        assert back.codimension_ == 1
        np.testing.assert_array_equal(back.labels_, model.labels_)
        np.testing.assert_array_equal(back.predict(EXACT["total"](data.X)), model.labels_)


def place_of(model, codimension):
    return next(i for i, one in enumerate(model.structures_) if one["codimension"] == codimension)


def test_without_an_exact_relation_nothing_is_certain():
    data = make_subspace(300, 400, n_features=8, codimension=2, noise=0.3, random_state=1)
    model = quiet(data.X)
    assert model.codimension_ == 2
    assert model.confidence_ < 0.95
