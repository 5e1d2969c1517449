"""fit(X, init=model): a loop over frames begins at the last plane, and a wrong one does no harm."""

import numpy as np
import pytest

from helpers import assert_same_subspace
from perpend import DPCP, RSGM
from perpend.datasets import make_subspace
from perpend.exceptions import InputError


def frame(i, n=6000, seed=0):
    """A road that tilts by a tenth of a degree a frame, among things beside it; and its normal."""
    rng, m = np.random.default_rng([seed, i]), n // 3
    road = np.column_stack([rng.uniform([-40, -8], [40, 8], (m, 2)), rng.normal(0, 0.02, m)])
    things = rng.uniform([-40, 5, 0], [40, 15, 4], (n - m, 3)) * [1, rng.choice([-1, 1]), 1]
    a = np.radians(0.1 * i)
    R = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
    return np.vstack([road, things]) @ R.T + [5, 2, -1.7 + 0.01 * i], R[:, 2]


def turned(model, normal):
    """The same model with another plane through its location."""
    Q, _ = np.linalg.qr(np.column_stack([normal, np.eye(3)[:, :2] + 0.1]))
    table = {"normals_": Q[:, :1].T, "components_": Q[:, 1:].T}
    table["intercept_"] = table["normals_"] @ model.location_
    other = DPCP(**model.get_params())
    other.__dict__.update(vars(model) | table)
    return other


def assert_same_fit(a, b):
    np.testing.assert_array_equal(a.normals_, b.normals_)
    np.testing.assert_array_equal(a.labels_, b.labels_)
    assert (a.confidence_, a.threshold_) == (b.confidence_, b.threshold_)


def test_a_loop_over_frames_searches_once():
    last = None
    for i in range(4):
        X, normal = frame(i)
        model = DPCP(affine=True, random_state=i).fit(X, init=last)
        assert ("path" in model.history_["stages"]) == (i == 0)
        assert model.confidence_ >= 0.95
        assert abs(model.normals_[0] @ normal) > 1 - 1e-6
        last = model


@pytest.mark.parametrize("normal", [(1, 0, 0), (0, 1, 0), (1, 0, 2)])
def test_a_wrong_plane_does_no_harm(normal):
    """It ends at the road, or the result is that of a fit without it."""
    X, _ = frame(2)
    cold = DPCP(affine=True, random_state=0).fit(X)
    warm = DPCP(affine=True, random_state=0).fit(X, init=turned(cold, np.array(normal, float)))
    assert_same_subspace(warm.normals_, cold.normals_, tol=1e-5)
    assert np.mean(warm.labels_ == cold.labels_) > 0.999
    if "path" in warm.history_["stages"]:
        assert_same_fit(warm, cold)


def test_a_plane_of_another_scene_is_never_sure_and_wrong():
    X, normal = frame(0, seed=1)
    sure = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        board = np.column_stack([rng.uniform(-9, 9, (900, 2)), rng.normal(0, 0.02, 900)])
        Q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        scene = np.vstack([board, rng.uniform(-9, 9, (900, 3))]) @ Q + rng.normal(0, 5, 3)
        other = DPCP(affine=True, random_state=0).fit(scene)
        model = DPCP(affine=True, random_state=0).fit(X, init=other)
        assert other.codimension_ == 1
        assert abs(model.normals_[0] @ normal) > 1 - 1e-6 or model.confidence_ < 0.95
        sure += model.confidence_ >= 0.95
    assert sure >= 3


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_linear_subspaces(noise):
    size = {"n_features": 10, "codimension": 3, "noise": noise}
    data = make_subspace(800, 800, **size, random_state=0)
    last = DPCP(random_state=0).fit(data.X[::2])
    model = DPCP(random_state=0).fit(data.X[1::2], init=last)
    assert "descent" not in model.history_["stages"]
    assert model.confidence_ >= 0.95
    assert_same_subspace(model.normals_, data.normals, tol=max(noise / 5, 1e-9))
    other = DPCP(random_state=0).fit(make_subspace(800, 800, **size, random_state=1).X)
    model = DPCP(random_state=0).fit(data.X, init=other)
    assert_same_subspace(model.normals_, data.normals, tol=max(noise / 5, 1e-9))


def test_a_model_that_can_not_be_used():
    X, _ = frame(0, n=900)
    model, linear = DPCP(affine=True, random_state=0).fit(X), DPCP(1, random_state=0).fit(X)
    for estimator, init, message in (
        (DPCP(affine=True), "last", "init of fit is str; expected a fitted model"),
        (DPCP(affine=True), DPCP(), "expected a fitted model"),
        (DPCP(affine=True), linear, "init has a linear subspace, and this DPCP fits an affine one"),
        (DPCP(affine=True, codimension=2), model, "codimension 1, and this DPCP was given 2"),
        (DPCP(normalize=False), linear, "normalize=True"),
        (DPCP(affine=True, init=np.eye(3)), model, "takes no init"),
        (RSGM(affine=True), model, "fit of this RSGM takes no init"),
    ):
        with pytest.raises(InputError, match=message):
            estimator.fit(X, init=init)
    with pytest.raises(InputError, match="fitted to 3 columns, and X has 2"):
        DPCP(affine=True).fit(X[:, :2], init=model)


def test_nothing_to_begin_at():
    X, _ = frame(0, n=900)
    nothing = DPCP(0, affine=True, random_state=0).fit(X)
    warm = DPCP(affine=True, random_state=0).fit(X, init=nothing)
    assert_same_fit(warm, DPCP(affine=True, random_state=0).fit(X))
