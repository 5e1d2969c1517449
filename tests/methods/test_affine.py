"""Affine subspaces: location and directions, wherever the cloud is, and the choice of "auto"."""

import numpy as np
import pytest

from helpers import (
    PUBLISHED,
    assert_orthonormal_rows,
    assert_same_subspace,
    assert_sure,
    mostly_slow,
)
from perpend import DPCP, RSGM, load, subspace_error
from perpend.datasets import make_subspace
from perpend.estimator import METHODS
from perpend.exceptions import InputError

SIZES = [(3, 1), (10, 4)]


def draw(D, c, share, seed, *, offset=1.0, noise=0.0, move=True, n_inliers=300):
    n_outliers = round(n_inliers * share / (1 - share))
    return make_subspace(
        n_inliers,
        n_outliers,
        n_features=D,
        codimension=c,
        noise=noise,
        offset=offset,
        move_outliers=move,
        random_state=seed,
    )


def pca(data):
    """Mean and normals of the true inliers."""
    inliers = data.X[data.y == 1]
    mean = inliers.mean(axis=0)
    return mean, np.linalg.svd(inliers - mean)[2][len(data.components) :]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share", [0.5, 0.7])
@pytest.mark.parametrize("offset", [1.0, 1e6])
def test_exact_subspaces_are_found_wherever_they_are(size, share, offset, seed):
    data = draw(*size, share, seed, offset=offset)
    model = assert_sure(DPCP(affine=True, random_state=seed + 1000).fit(data.X))
    assert model.affine_
    assert model.codimension_ == size[1]
    assert model.n_components_ == size[0] - size[1]
    assert_orthonormal_rows(np.vstack([model.normals_, model.components_]))
    assert_same_subspace(model.normals_, data.normals, tol=1e-15 * offset + 1e-13)
    off = np.linalg.norm(data.normals @ (model.location_ - data.location))
    assert off < 1e-15 * offset + 1e-13
    np.testing.assert_allclose(model.normals_ @ model.location_, model.intercept_, rtol=1e-12)
    mean = data.location + (data.X[data.y == 1] - data.location).mean(axis=0)
    np.testing.assert_allclose(model.location_, mean, rtol=0, atol=1e-12 + 1e-15 * offset)
    np.testing.assert_array_equal(model.labels_, data.y)


@pytest.mark.parametrize("size", SIZES)
def test_noise_costs_hardly_more_than_pca_of_the_true_inliers(size, seed):
    data = draw(*size, 0.6, seed, offset=1e3, noise=0.02)
    model = DPCP(affine=True, random_state=seed + 1000).fit(data.X)
    mean, normals = pca(data)
    assert model.codimension_ == size[1]
    assert model.confidence_ >= 0.95
    assert_same_subspace(model.normals_, normals, tol=2e-3)
    assert np.linalg.norm(normals @ (model.location_ - mean)) < 2e-3
    assert model.noise_ == pytest.approx(0.02, rel=0.2)


@pytest.mark.parametrize("share", mostly_slow([0.0, 0.5, 0.7], 0.5))
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_auto_decides(share, noise, seed):
    def decided(data):
        model = assert_sure(DPCP(affine="auto", random_state=seed + 1000).fit(data.X))
        assert model.codimension_ == 2
        return model.affine_

    assert not decided(draw(5, 2, share, seed, offset=0.0, noise=noise))
    for offset in (0.5, 1e6):
        assert decided(draw(5, 2, share, seed, offset=offset, noise=noise))
    assert decided(draw(5, 2, share, seed, offset=10.0, noise=noise, move=False))


def test_auto_that_stays_linear_is_the_linear_fit(seed):
    data = draw(6, 2, 0.5, seed, offset=0.0, noise=0.02)
    auto = DPCP(affine="auto", random_state=seed).fit(data.X)
    linear = DPCP(random_state=seed).fit(data.X)
    assert not auto.affine_
    assert auto.evidence_["origin_chance"] > 1e-6
    np.testing.assert_array_equal(auto.normals_, linear.normals_)
    np.testing.assert_array_equal(auto.labels_, linear.labels_)
    np.testing.assert_array_equal(auto.location_, 0)


def test_a_linear_subspace_seen_from_afar_is_linear(seed):
    """The inliers' mean is far from the origin, but on the subspace: a long lever.

    Seen from the origin all rows are near a line, and some lie on a subspace that holds it: at a
    finer scale, which is the one that counts.
    """
    data = draw(5, 2, 0.5, seed, offset=0.0, noise=0.02)
    X = data.X + 20 * data.components[0]
    model = DPCP(affine="auto", random_state=seed).fit(X)
    assert not model.affine_
    assert model.codimension_ == 2
    assert subspace_error(model.normals_, data.normals) < 0.02


def test_outliers_elsewhere(seed):
    """From one view, all rows would lie on the line between two clouds."""
    data = draw(4, 1, 0.6, seed, offset=10.0, noise=0.02, move=False)
    model = DPCP(affine=True, random_state=seed).fit(data.X)
    _, normals = pca(data)
    assert model.codimension_ == 1
    assert_same_subspace(model.normals_, normals, tol=2e-3)


def test_using_an_affine_fit(tmp_path):
    data = draw(6, 2, 0.5, 0, offset=50.0, noise=0.01)
    model = DPCP(affine=True, random_state=0).fit(data.X)
    N, C, m = model.normals_, model.components_, model.location_
    distance = np.linalg.norm((data.X - m) @ N.T, axis=1)
    np.testing.assert_allclose(model.distance(data.X), distance, atol=1e-13)
    np.testing.assert_allclose(model.score_samples(data.X), -distance, atol=1e-13)
    np.testing.assert_array_equal(model.predict(data.X), model.labels_)
    np.testing.assert_array_equal(model.labels_, np.where(distance <= model.threshold_, 1, -1))
    coordinates = model.transform(data.X)
    np.testing.assert_allclose(coordinates, (data.X - m) @ C.T, atol=1e-12)
    back = model.inverse_transform(coordinates)
    np.testing.assert_allclose(model.distance(back), 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(back - data.X, axis=1), distance, atol=1e-12)
    assert "affine" in model.summary()
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.affine_
    np.testing.assert_array_equal(again.score_samples(data.X), model.score_samples(data.X))


def test_what_moves_and_turns_the_rows_moves_and_turns_the_subspace(seed):
    data = draw(5, 2, 0.5, seed, noise=0.02)
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    a = DPCP(affine=True, random_state=seed).fit(data.X)
    b = DPCP(affine=True, random_state=seed).fit(3 * data.X @ Q + 100)
    # The coordinatewise median does not turn with the rows, so neither do views and weights.
    assert_same_subspace(a.normals_ @ Q, b.normals_, tol=1e-3)
    np.testing.assert_allclose(b.normals_ @ (3 * a.location_ @ Q + 100 - b.location_), 0, atol=5e-3)
    assert b.noise_ == pytest.approx(3 * a.noise_, rel=0.05)


def test_weights_contamination_threshold_sample_and_callback():
    data = draw(5, 2, 0.6, 1, offset=1e3, noise=0.01)
    outlier = data.y == -1
    model = DPCP(affine=True, random_state=0)
    model.fit(data.X, sample_weight=np.where(outlier, 0.0, 1.0))
    mean, normals = pca(data)
    assert_same_subspace(model.normals_, normals, tol=1e-4)
    np.testing.assert_allclose(model.location_, mean, atol=1e-4)
    given = DPCP(affine=True, contamination=0.6, random_state=0).fit(data.X)
    assert (given.labels_ == -1).mean() == pytest.approx(0.6, abs=0.01)
    assert DPCP(affine=True, threshold=0.25, random_state=0).fit(data.X).threshold_ == 0.25
    stages = set()
    sampled = DPCP(
        affine=True,
        sample_size=300,
        n_jobs=2,
        random_state=0,
        callback=lambda p: stages.add(p.stage),
    ).fit(data.X)
    assert sampled.codimension_ == 2
    assert "polish" in stages


def test_given_codimensions():
    data = draw(6, 2, 0.4, 0, offset=100.0)
    for name in PUBLISHED:
        model = METHODS[name](codimension=2, affine=True, random_state=0).fit(data.X)
        assert_same_subspace(model.normals_, data.normals, tol=1e-5)
        off = np.linalg.norm(data.normals @ (model.location_ - data.location))
        assert off < 1e-5, name
    with pytest.raises(InputError, match=r"larger than the number of features \(6\)"):
        RSGM(codimension=7, affine=True).fit(data.X)
    starts = np.vstack([data.normals, np.eye(6)])
    given = DPCP(init=starts, affine=True, random_state=0).fit(data.X)
    assert_same_subspace(given.normals_, data.normals, tol=1e-12)
    raw = DPCP(affine=True, refine=False, normalize=False, random_state=0).fit(data.X)
    assert_same_subspace(raw.normals_, data.normals, tol=1e-2)


def test_single_precision_far_away(seed):
    """Numbers near 1000 have steps of 6e-5 in single precision: that is the noise."""
    data = draw(5, 2, 0.5, seed, offset=1e3)
    X = data.X.astype(np.float32)
    model = DPCP(affine=True, random_state=seed).fit(X)
    assert model.codimension_ == 2
    assert model.normals_.dtype == model.transform(X).dtype == np.float32
    assert model.location_.dtype == np.float64
    assert_same_subspace(model.normals_, data.normals, tol=1e-4)
    assert np.linalg.norm(data.normals @ (model.location_ - data.location)) < 1e-4


def test_a_point_and_the_whole_space():
    rng = np.random.default_rng(0)
    X = np.vstack(
        [
            np.full((60, 3), 7.0) + 1e-3 * rng.standard_normal((60, 3)),
            7 + 5 * rng.standard_normal((60, 3)),
        ]
    )
    point = DPCP(codimension=3, affine=True, random_state=0).fit(X)
    assert point.components_.shape == (0, 3)
    np.testing.assert_allclose(point.location_, 7, atol=1e-3)
    space = DPCP(codimension=0, affine=True, random_state=0).fit(X)
    assert space.normals_.shape == (0, 3)
    assert np.all(space.labels_ == 1)


def test_equal_rows_and_a_single_column():
    with pytest.warns(UserWarning, match="not sure"):
        model = DPCP(affine=True, random_state=0).fit(np.full((10, 3), 4.0))
    np.testing.assert_allclose(model.distance(np.full((1, 3), 4.0)), 0, atol=1e-12)
    column = np.concatenate([np.full(40, 3.0), np.linspace(-5, 9, 30)])[:, None]
    model = DPCP(codimension=1, affine=True, random_state=0).fit(column)
    np.testing.assert_allclose(model.location_, 3, atol=1e-8)


def test_tensors_as_on_a_device(monkeypatch, dtype):
    """Tensors in memory take the way of tensors on a GPU, and give the same subspace."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("perpend.rows.kinds.READ_AS_NUMPY", set())
    data = draw(6, 2, 0.5, 0, offset=1e3)
    X = torch.tensor(data.X.astype(dtype))
    model = DPCP(affine="auto", random_state=0).fit(X, sample_weight=torch.ones(600))
    assert model.affine_
    tol = 1e-11 if dtype == np.float64 else 1e-4
    assert_same_subspace(model.normals_.numpy(), data.normals, tol=tol)
    off = data.normals @ (model.location_.numpy() - data.location)
    np.testing.assert_allclose(off, 0, atol=tol)
    assert model.location_.dtype == torch.float64
    assert model.transform(X).dtype == model.distance(X).dtype == X.dtype
    np.testing.assert_array_equal(model.predict(X).numpy(), model.labels_.numpy())


def test_tensors():
    torch = pytest.importorskip("torch")
    data = draw(6, 2, 0.5, 0, offset=1e3)
    model = DPCP(affine=True, random_state=0).fit(torch.tensor(data.X))
    plain = DPCP(affine=True, random_state=0).fit(data.X)
    assert isinstance(model.location_, torch.Tensor)
    np.testing.assert_array_equal(model.normals_.numpy(), plain.normals_)
    np.testing.assert_array_equal(model.location_.numpy(), plain.location_)
    distance = model.distance(torch.tensor(data.X))
    assert isinstance(distance, torch.Tensor)
    np.testing.assert_allclose(distance.numpy(), plain.distance(data.X))
    coordinates = model.transform(torch.tensor(data.X))
    back = model.inverse_transform(coordinates)
    np.testing.assert_allclose(model.distance(back).numpy(), 0, atol=1e-11)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of units, and of those that are not sure
def test_a_sure_subspace_has_members_however_far_away_others_are():
    """Rows a million times as far away have rounding errors as large as the sample's noise."""
    sure = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(1.0, (600, 8)) * np.exp(rng.uniform(0, 8, 8))
        X[:, :2] = rng.standard_normal((600, 2))
        on = rng.random(600) < 0.4
        X[on, 0], X[on, 1] = 0.3, 1e-4 * X[on, 2] + 0.2
        model = DPCP(affine=True, random_state=seed).fit(X)
        assert model.confidence_ < 0.95 or np.sum(model.labels_ == 1) > model.n_components_ + 1
        sure += model.confidence_ >= 0.95 and model.codimension_ == 2
    assert sure >= 12


@pytest.mark.parametrize("how", [{"affine": True}, {"affine": "auto"}, {"outliers": "both"}])
@pytest.mark.parametrize("size", [1e-160, 1e-80, 1e80, 1e160])
def test_rows_whose_distances_are_no_numbers_when_multiplied_are_refused(size, how):
    X = make_subspace(300, 200, n_features=5, codimension=1, random_state=0).X + 1
    model = DPCP(random_state=0, **({"affine": True} | how))
    with pytest.raises(InputError, match="Divide X by a constant, for example by"):
        model.fit(size * X)
    assert model.fit(size**0.4 * X).codimension_ == 1
