"""partial_fit: the fit on all rows in bounded memory, and a report when the subspace changes."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import perpend
from helpers import assert_same_subspace
from perpend import DPCP, RSGM, open_rows, subspace_error
from perpend.datasets import make_subspace
from perpend.exceptions import CodimensionWarning, DriftWarning, InputError
from perpend.structure.drift import Frame, errors_of, fewer, measure, of_fit, subspace_of

D, C = 8, 2


def draw(n, seed=0, noise=0.05, **how):
    how = {"n_features": D, "codimension": C, **how}
    return make_subspace(n // 2, n // 2, noise=noise, random_state=seed, **how)


def streamed(model, X, size=250, **how):
    for start in range(0, len(X), size):
        part = {name: values[start : start + size] for name, values in how.items()}
        model.partial_fit(X[start : start + size], **part)
    return model


def turned(data, degrees):
    """Rows whose first normal is turned towards the first component."""
    a, b = data.normals[0], data.components[0]
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    P = np.column_stack([a, b])
    return data.X @ (np.eye(D) + P @ np.array([[c - 1, -s], [s, c - 1]]) @ P.T).T


def assert_equal_models(a, b):
    for name in ("normals_", "components_", "intercept_", "labels_", "threshold_", "confidence_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.drifts_ == b.drifts_
    assert (a.n_batches_, a.n_samples_seen_) == (b.n_batches_, b.n_samples_seen_)


# -- the fit on all rows ---------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.05, 0.0])
def test_it_is_as_good_as_the_fit_on_all_rows(seed, noise):
    data = draw(12_000, seed, noise)
    fitted = DPCP(random_state=seed).fit(data.X)
    model = streamed(DPCP(sample_size=2048, random_state=seed), data.X)
    assert (model.codimension_, model.drifts_) == (C, [])
    assert model.confidence_ >= 0.95
    error, of_fit_ = (subspace_error(m.normals_, data.normals) for m in (model, fitted))
    assert error < 1e-12 if noise == 0 else error < 1.1 * of_fit_
    assert len(model._stream["X"]) <= 2 * 2048
    # It knows how uncertain it is, as the fit does.
    assert noise == 0 or model.uncertainty().angle == pytest.approx(
        fitted.uncertainty().angle, rel=0.1
    )


def test_the_first_batch_is_a_fit():
    X = draw(600).X
    model, fitted = DPCP(random_state=0).partial_fit(X), DPCP(random_state=0).fit(X)
    for name in ("normals_", "labels_", "threshold_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(fitted, name))


def test_an_affine_subspace(seed):
    data = draw(4000, seed, offset=4.0)
    fitted = DPCP(affine=True, random_state=seed).fit(data.X)
    model = streamed(DPCP(affine=True, random_state=seed), data.X, 500)
    assert model.affine_
    assert (model.codimension_, model.drifts_) == (C, [])
    assert_same_subspace(model.normals_, fitted.normals_, tol=2e-3)
    np.testing.assert_allclose(model.normals_ @ data.location, model.intercept_, atol=2e-3)
    assert model.p_value(data.normals, data.normals @ data.location) > 1e-4
    np.testing.assert_allclose(model.normals_ @ model.location_, model.intercept_, atol=1e-12)


def test_weights_count_like_equal_rows():
    data = draw(6000)
    weight = np.random.default_rng(0).integers(0, 4, len(data.X))
    model = streamed(DPCP(random_state=0), data.X, sample_weight=weight)
    fitted = DPCP(random_state=0).fit(data.X, sample_weight=weight)
    assert_same_subspace(model.normals_, fitted.normals_, tol=1e-3)
    assert model.n_samples_seen_ == np.count_nonzero(weight)


def test_single_precision_stays_single():
    data = draw(6000)
    model = streamed(DPCP(random_state=0), data.X.astype(np.float32))
    assert model.normals_.dtype == np.float32
    assert_same_subspace(model.normals_, DPCP(random_state=0).fit(data.X).normals_, tol=1e-3)


def test_it_goes_on_from_a_fit_and_fit_begins_anew():
    data = draw(8000)
    model = DPCP(random_state=0).fit(data.X[:4000])
    streamed(model, data.X[4000:])
    assert model.n_samples_seen_ == 8000
    assert_same_subspace(model.normals_, DPCP(random_state=0).fit(data.X).normals_, tol=5e-4)
    model.fit(data.X[:600])
    assert not hasattr(model, "drifts_")
    again = DPCP(random_state=0).fit(data.X[:600])
    np.testing.assert_array_equal(model.normals_, again.normals_)


@pytest.mark.parametrize("affine", [False, True])
def test_what_a_fit_has_learned_stands_for_its_rows(affine):
    """The moments of its members, put together from spectrum and distances."""
    X = draw(8000, offset=3.0 * affine).X
    model = DPCP(affine=affine, random_state=0).fit(X[:4000])
    frame = Frame.of(model)
    own, new = (measure(frame, part, np.ones(4000), 0)[0] for part in (X[:4000], X[4000:]))
    known = of_fit(model, frame, new)
    assert known.members == pytest.approx(own.members, rel=1e-3)
    scale = np.abs(own.gram).max()
    np.testing.assert_allclose(known.gram, own.gram, atol=0.05 * scale)


# -- drift -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [10, 90])
def test_a_turn_is_reported_at_once_and_followed(seed, degrees):
    before, data = draw(5000, seed), draw(5000, seed)
    model = streamed(DPCP(random_state=seed), before.X)
    assert model.drifts_ == []
    with pytest.warns(DriftWarning, match=r"subspace turned by about .* seen in batch 21"):
        streamed(model, turned(data, degrees)[:1250])
    (report,) = model.drifts_
    assert report["batch"] == 21
    assert report["row"] == 5000
    assert report["angle"] == pytest.approx(degrees, abs=1.5)
    assert "turned by about" in model.summary()
    new = DPCP(random_state=seed).fit(turned(data, degrees)[:1250])
    assert_same_subspace(model.normals_, new.normals_, tol=0.01)


@pytest.mark.parametrize("codimension", [C - 1, C + 1])
def test_another_codimension_is_reported(seed, codimension):
    before, after = draw(5000, seed), draw(2500, seed + 100, codimension=codimension)
    own, other = (np.vstack([one.normals, one.components]) for one in (before, after))
    model = streamed(DPCP(random_state=seed), before.X)
    with pytest.warns(DriftWarning, match=f"codimension was {C} and is {codimension} now"):
        streamed(model, (after.X @ other.T @ own))
    assert model.codimension_ == codimension
    assert [(one["codimension"], one["codimension_now"]) for one in model.drifts_] == [
        (C, codimension)
    ]


def test_a_subspace_that_is_gone_is_reported():
    model = streamed(DPCP(random_state=0), draw(3000).X)
    noise = np.random.default_rng(0).standard_normal((250, D))
    with (
        pytest.warns(CodimensionWarning),
        pytest.warns(DriftWarning, match="changed, and the new one is not sure yet"),
    ):
        model.partial_fit(noise)
    assert (model.codimension_, model.drifts_[-1]["codimension_now"]) == (0, None)
    assert model.confidence_ < 0.95


def test_exact_rows_that_turn_by_little():
    data = draw(4000, noise=0.0)
    model = streamed(DPCP(random_state=0), data.X)
    with pytest.warns(DriftWarning):
        model.partial_fit(turned(data, 0.01)[:250])
    assert model.drifts_[-1]["angle"] == pytest.approx(0.01, rel=1e-3)


def test_a_slow_turn_is_seen_over_many_batches():
    data = draw(10_000, noise=0.02)
    parts = [data._replace(X=data.X[250 * i :][:250]) for i in range(40)]
    X = np.vstack([turned(part, 0.05 * i) for i, part in enumerate(parts)])
    with pytest.warns(DriftWarning, match="subspace turned"):
        model = streamed(DPCP(random_state=0), X)
    assert all(one["reason"] == "turn" for one in model.drifts_)


def test_more_outliers_are_no_drift():
    """Every other batch has four fifths of them."""
    X, y = draw(12_000, noise=0.03)[:2]
    inliers, outliers, model = X[y == 1], X[y == -1], DPCP(random_state=0)
    for i in range(16):
        n = 200 if i % 2 == 0 else 80
        model.partial_fit(
            np.vstack([inliers[200 * i :][:n], outliers[200 * i :][: 200 if n == 200 else 320]])
        )
    assert model.drifts_ == []
    assert model.codimension_ == C


def test_the_chance_of_a_turn_is_uniform_where_nothing_turns():
    """Blocks of a tenth of the rows, at the subspace of earlier ones; 400 of them."""
    from perpend.structure.drift import chance_of_turn

    data = draw(84_000, noise=0.1)
    frame = Frame.of(DPCP(random_state=0).fit(data.X[:4000]))
    old = measure(frame, data.X[:4000], np.ones(4000), 0)[0]
    blocks = data.X[4000:].reshape(400, 200, D)
    chances = [
        chance_of_turn(measure(frame, X, np.ones(200), 0)[0], old, frame, 1.0)[0] for X in blocks
    ]
    share = [np.mean(np.array(chances) < level) for level in (0.05, 0.5)]
    np.testing.assert_allclose(share, [0.05, 0.5], atol=0.1)
    assert min(chances) > 1e-5


def test_the_chance_of_fewer_members_is_a_sum():
    """Beta-binomial, by summing the binomial law over the shares that earlier rows leave open."""
    from scipy import stats

    frame = Frame.of(DPCP(random_state=0).fit(draw(1000).X))
    old, new = (measure(frame, draw(n, 1).X, np.ones(n), 0)[0] for n in (400, 100))
    p = (np.arange(4000) + 0.5) / 4000
    law = stats.beta.pdf(p, old.share * 400 + 1, (1 - old.share) * 400 + 1)
    expected = np.average(stats.binom.cdf(np.floor(new.share * 100), 100, p), weights=law)
    assert fewer(new, old, 1.0) == pytest.approx(expected, rel=1e-3)


def test_moments_of_two_frames_add_up_to_the_same_subspace():
    """Seen from normals that are off by e, the step is right to the order e^2."""
    data = draw(20_000, noise=0.03)
    frame = Frame.of(DPCP(random_state=0).fit(data.X))
    at = subspace_of(measure(frame, data.X, np.ones(len(data.X)), 0)[0], frame)
    off = []
    for angle in (0.02, 0.04):
        turn = angle * at.components[:, :C]
        Q, _ = np.linalg.qr(np.hstack([at.normals + turn, at.components]))
        other = at._replace(normals=Q[:, :C], components=Q[:, C:])
        moments = measure(other, data.X, np.ones(len(data.X)), 0)[0]
        off.append(subspace_error(subspace_of(moments, other).normals.T, at.normals.T))
    assert off[0] < 0.1 * 0.02
    assert off[1] < 0.1 * 0.04
    error = errors_of(measure(at, data.X, np.ones(len(data.X)), 0)[0], at)
    fitted = DPCP(random_state=0).fit(data.X)._normals_error
    np.testing.assert_allclose(error.along, fitted["along"], rtol=0.1)


# -- batches of all kinds --------------------------------------------------------------------------


def test_batches_of_one_row_never_crash_and_end_at_the_fit():
    data, model = draw(400), DPCP(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first rows are sure of nothing
        for i, row in enumerate(data.X):
            model.partial_fit(row[None])
            assert i > 30 or model.confidence_ < 0.95
            assert model.labels_.shape == (1,)
    assert model.codimension_ == C
    assert model.confidence_ >= 0.95
    assert_same_subspace(model.normals_, data.normals, tol=0.05)


def test_empty_batches_change_nothing():
    X, model = draw(600).X, DPCP(random_state=0)
    model.partial_fit(X[:0])
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.partial_fit(X)
    normals, seen = model.normals_.copy(), model.n_samples_seen_
    model.partial_fit(X[:0])
    np.testing.assert_array_equal(model.normals_, normals)
    assert model.n_samples_seen_ == seen


@pytest.mark.parametrize("n", [0, 5])
def test_another_width_is_an_error_and_changes_nothing(n):
    model = DPCP(random_state=0).partial_fit(draw(600).X)
    before = vars(model).copy()
    with pytest.raises(ValueError, match=f"X has 4 features, but DPCP is expecting {D}"):
        model.partial_fit(np.ones((n, 4)))
    assert vars(model) == before


def test_what_it_refuses_it_says():
    X = draw(200).X
    with pytest.raises(InputError, match='missing="error"'):
        DPCP(missing="mask").partial_fit(X)
    with pytest.raises(InputError, match='refine="auto"'):
        DPCP(refine=False).partial_fit(X)
    with pytest.raises(InputError, match="contains NaN"):
        DPCP().partial_fit(np.where(X > 0.5, np.nan, X))
    assert not hasattr(RSGM(), "partial_fit")


def test_rows_that_are_not_in_memory_are_refused():
    X = draw(200).X
    for rows, advice in ((sparse.csr_array(X), r"toarray\(\)"), (open_rows([X]), "in X.windows")):
        with pytest.raises(InputError, match=f"batch after batch.*{advice}"):
            DPCP().partial_fit(rows)
    rows, model = open_rows([X], memory_limit="4MiB"), DPCP(random_state=0)
    for window in rows.windows:
        model.partial_fit(rows[window])
    assert_equal_models(model, DPCP(random_state=0).partial_fit(X))


def test_dask_arrays_are_refused():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    with pytest.raises(InputError, match=r"X\.blocks\[i\]\.compute\(\)"):
        DPCP().partial_fit(da.from_array(draw(200).X, chunks=(50, -1)))


def test_tensors_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(InputError, match=r"X\.cpu\(\)\.numpy\(\)"):
        DPCP().partial_fit(torch.ones(20, 3))


# -- the same again --------------------------------------------------------------------------------


@pytest.mark.parametrize("affine", [False, True])
def test_a_saved_copy_goes_on_bit_for_bit(tmp_path, affine):
    X = draw(4000).X
    model = streamed(DPCP(affine=affine, sample_size=1000, random_state=0), X[:2600])
    model.save(tmp_path / "model.npz")
    copies = [perpend.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))]
    for one in (model, *copies):
        streamed(one, X[2600:])
    fresh = streamed(clone(model), X[:2600])
    streamed(fresh, X[2600:])
    for one in (*copies, fresh):
        assert_equal_models(one, model)


@pytest.mark.parametrize("affine", [False, True])
def test_a_saved_fit_goes_on_also_without_its_evidence(tmp_path, affine):
    """`evidence_` is for users; files of earlier versions have the variances only there."""
    X = draw(3000, offset=3.0 * affine).X
    model = DPCP(affine=affine, random_state=0).fit(X[:2000])
    model.save(tmp_path / "model.npz")
    same, old = perpend.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))
    del old._inlier_variances
    for table in old._others:
        if table is not None:
            del table["_inlier_variances"]
    old.save(tmp_path / "old.npz")
    old = perpend.load(tmp_path / "old.npz")
    np.testing.assert_allclose(old._inlier_variances, model._inlier_variances, rtol=1e-9)
    same.evidence_ = {}
    for one in (model, same, old):
        one.partial_fit(X[2000:])
        assert one._stream["windows"][0]["n_rows"] == 2000  # those of the fit
    np.testing.assert_array_equal(same.normals_, model.normals_)
    assert_same_subspace(old.normals_, model.normals_, tol=1e-9)


def test_a_file_whose_state_does_not_fit_is_refused(tmp_path):
    model = DPCP(random_state=0).partial_fit(draw(600).X)
    for name, value in (("weight", np.ones(3)), ("n_rows", -1), ("X", np.full((600, D), np.nan))):
        bad = pickle.loads(pickle.dumps(model))
        bad._stream[name] = value
        bad.save(tmp_path / "bad.npz")
        with pytest.raises(perpend.exceptions.ModelFileError, match="partial_fit"):
            perpend.load(tmp_path / "bad.npz")


def test_another_structure_chosen_by_hand_goes_on():
    rng = np.random.default_rng(0)
    street = rng.uniform([-20, -20, -1], [20, 20, 1], (6000, 3))
    street[::2, 2] = rng.normal(0, 0.05, 3000)
    model = streamed(DPCP(affine=True, random_state=0), street[:4000], 500)
    i = next(i for i, one in enumerate(model.structures_) if not one["chosen"])
    other = model.choose(i)
    assert len(other.labels_) == 500
    other.partial_fit(street[4000:4500])
    assert other.n_samples_seen_ == 4500
