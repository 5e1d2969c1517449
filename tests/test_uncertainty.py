"""How uncertain a subspace is: the covariance against the errors of many draws."""

import numpy as np
import pytest

from perpend import DPCP, RSGM, load
from perpend.datasets import make_subspace
from perpend.exceptions import InputError

N, DRAWS = 400, 24


def plane(seed, share=0.4):
    """Points near a plane through (1, 2, 3), others around it, the normal and the offset."""
    rng, n = np.random.default_rng([5, seed]), round(share * N)
    X = rng.uniform([-4, -3, -2], [4, 3, 2], (N, 3))
    X[:n, 2] = 0
    X[:n] += rng.normal(0, 0.02, (n, 3))
    Q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    return X @ Q.T + [1, 2, 3], Q[:, 2], Q[:, 2] @ [1, 2, 3]


@pytest.mark.parametrize("share", [1.0, 0.4])
def test_regions_of_planes_hold_the_truth(share):
    """Chi-squared of the errors has a mean of 3, with an error of sqrt(6 / DRAWS) = .5."""
    square, inside = [], []
    for seed in range(DRAWS):
        X, normal, offset = plane(seed, share)
        model = DPCP(1, affine=True, random_state=seed).fit(X)
        sign = np.sign(model.normals_[0] @ normal)
        off = sign * np.append(normal, offset) - np.append(model.normals_[0], model.intercept_)
        square.append(off @ np.linalg.pinv(model.normals_covariance_[0], rcond=1e-9) @ off)
        inside.append(model.p_value(7 * normal, 7 * offset) > 0.05)
    assert 1.5 < np.mean(square) < 4.5
    assert np.mean(inside) > 0.8  # 95 %, three deviations below


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_out"), [(12, 0), (40, 60)])
def test_few_members_have_wider_regions(n, n_out):
    """By a normal law, regions of few members hold the truth too seldom."""
    inside = []
    for seed in range(150):
        rng = np.random.default_rng([6, seed])
        X = np.column_stack([rng.uniform(-2, 2, (n, 2)), rng.normal(0, 0.01, n)])
        X = np.vstack([X, rng.uniform(-2, 2, (n_out, 3))])
        model = DPCP(1, affine=True, random_state=seed).fit(X)
        inside.append(model.p_value([0, 0, 1.0], 0.0) > 0.05)
    assert np.mean(inside) > 0.88


def test_several_normals():
    """As many as PCA on the inliers alone has: sums over its rows, without any weights."""
    data = make_subspace(500, 0, n_features=10, codimension=3, noise=0.05, random_state=0)
    model = DPCP(3, random_state=0).fit(data.X)
    unit = data.X / np.linalg.norm(data.X, axis=1, keepdims=True)
    noise, inside = unit @ model.normals_.T, unit @ model.components_.T
    s2, along = np.mean(noise**2), np.mean(inside**2, axis=0)
    expected = (model.components_.T * (s2 / 500 * along / (along - s2) ** 2)) @ model.components_
    got = model.normals_covariance_[:, :10, :10]
    assert not np.any(model.normals_covariance_[:, 10])
    np.testing.assert_allclose(np.mean(got, axis=0), expected, atol=0.1 * np.max(expected))
    assert model.p_value(data.normals) > 0.01
    rotated = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0] @ data.normals
    assert model.p_value(rotated) == pytest.approx(model.p_value(data.normals))
    assert model.p_value(np.eye(3, 10)) < 1e-6


def test_it_is_small_with_many_rows_and_shrinks_like_their_root():
    angle = [
        DPCP(1, affine=True, random_state=0).fit(np.tile(plane(0)[0], (k, 1)) + e).uncertainty()
        for k, e in ((1, 0), (4, np.random.default_rng(0).normal(0, 1e-3, (4 * N, 3))))
    ]
    assert 1.8 < angle[0].angle / angle[1].angle < 2.2
    assert 1.8 < angle[0].offset / angle[1].offset < 2.2


def test_words_and_files(tmp_path):
    X, *_ = plane(0)
    model = DPCP(1, affine=True, random_state=0).fit(X)
    assert f"uncertainty {model.uncertainty().angle:.2g} degrees, " in model.summary()
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.normals_covariance_, model.normals_covariance_)
    model.report(tmp_path / "page.html", X)
    assert "Uncertainty" in (tmp_path / "page.html").read_text("utf-8")


def test_without_noise_nothing_may_differ():
    data = make_subspace(100, 50, n_features=5, codimension=2, random_state=0)
    model = DPCP(random_state=0).fit(data.X)
    assert not np.any(model.normals_covariance_)
    assert model.p_value(data.normals) == 1.0
    assert model.p_value(np.eye(2, 5)) == 0.0
    assert "uncertainty" not in model.summary()


def test_where_it_is_not_known():
    X, normal, _ = plane(0)
    with pytest.raises(InputError, match=r"This RSGM has no uncertainty.*refine"):
        RSGM(1, affine=False).fit(X).uncertainty()
    assert not hasattr(RSGM(1).fit(X), "normals_covariance_")
    model = DPCP(1, affine=True, random_state=0).fit(X)
    with pytest.raises(InputError, match=r"normals of shape \(2, 3\).*expected \(1, 3\)"):
        model.p_value(np.eye(2, 3))
    with pytest.raises(InputError, match="level=2"):
        model.uncertainty(2)
    assert model.p_value(np.cross(normal, [1.0, 0, 0])) == 0.0


def test_directions_that_are_none_are_refused():
    X, normal, _ = plane(0)
    model = DPCP(1, affine=True, random_state=0).fit(X)
    for bad in ([0, 0, 0], [np.nan, 0, 1]):
        with pytest.raises(InputError, match=r"normals is zero or not finite.* Give 1 independent"):
            model.p_value(bad, 4)
    assert model.p_value(1e-9 * normal, 0.0) < 1e-99  # its length is free
    data = make_subspace(300, 0, n_features=6, codimension=2, noise=0.05, random_state=0)
    model = DPCP(2, random_state=0).fit(data.X)
    with pytest.raises(InputError, match=r"linearly dependent.* Give 2 independent directions,"):
        model.p_value(np.ones((2, 6)))


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_without_a_normal_nothing_can_err():
    model = DPCP(affine=True, random_state=0).fit(np.random.default_rng(0).normal(size=(400, 3)))
    assert model.codimension_ == 0
    for ask in (model.uncertainty, lambda: model.p_value(np.empty((0, 3)))):
        with pytest.raises(InputError, match="has codimension 0: it has no normals"):
            ask()
    assert model.normals_covariance_.shape == (0, 4, 4)
