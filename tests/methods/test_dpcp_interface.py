"""What a user of DPCP relies on apart from the subspace itself."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from perpend import DPCP, as_rows, dpcp, subspace_error
from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.solvers import AutoStep, MBLSStep, Progress


@pytest.fixture(scope="module")
def data():
    return make_subspace(300, 450, n_features=12, codimension=4, noise=0.02, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return DPCP(random_state=1).fit(data.X)


def reference_mbls(X, b, n_iter):
    """The authors' rule for one start, written down from its description."""
    step, f_old = 1e-2, np.abs(X @ b).sum()
    for _ in range(n_iter):
        if step <= 1e-15:
            break
        g = X.T @ np.sign(X @ b)
        trial = b - step * g
        while (
            np.abs(X @ (trial / np.linalg.norm(trial))).sum() > f_old - 1e-3 * step * (g @ g)
            and step > 1e-15
        ):
            step *= 0.5
            trial = b - step * g
        b = trial / np.linalg.norm(trial)
        f_old = np.abs(X @ b).sum()
    return b


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_iter", [1, 2, 5, 10, 20])
def test_mbls_is_the_published_algorithm(n_iter: int) -> None:
    for seed in range(3):
        X = make_subspace(200, 300, n_features=15, codimension=3, random_state=seed).X
        starts = np.random.default_rng(seed + 50).standard_normal((6, 15))
        starts /= np.linalg.norm(starts, axis=1, keepdims=True)
        model = DPCP(
            n_starts=6, init=starts, step="mbls", refine=False, max_iter=n_iter, random_state=0
        ).fit(X)
        expected = np.array([reference_mbls(X, b, n_iter) for b in starts])
        assert_allclose(model.directions_, expected, atol=1e-10)


@pytest.mark.parametrize("draw", range(5))
def test_one_spectral_start_is_the_classic_method_only_for_one_normal(draw: int) -> None:
    """The call that the README and the card name, and the one that looks like it."""
    data = make_subspace(500, 500, n_features=10, codimension=3, random_state=draw)
    classic = DPCP(codimension=1, n_starts=1, init="spectral", refine=False).fit(data.X)
    assert classic.codimension_ == 1
    assert classic.normals_.shape == classic.directions_.shape == (1, 10)
    assert np.linalg.norm(data.components @ classic.normals_.T) < 1e-6  # and it is a normal
    assert classic.confidence_ < 0.5  # but not the only one, which it knows
    free = DPCP(n_starts=1, init="spectral", random_state=draw).fit(data.X)
    assert free.codimension_ == 3
    assert free.confidence_ > 0.95
    assert subspace_error(free.components_, data.components) < 1e-9


def test_the_readme_and_the_card_name_the_classic_call() -> None:
    call = 'DPCP(codimension=1, n_starts=1, init="spectral", refine=False)'
    for page in ("README.md", "docs/methods/DPCP.md"):
        assert call in (Path(__file__).parents[2] / page).read_text(encoding="utf-8")


def test_shapes_and_identities(model, data) -> None:
    X = data.X
    assert model.components_.shape == (8, 12)
    assert model.normals_.shape == (4, 12)
    assert model.n_components_ + model.codimension_ == model.n_features_in_ == 12
    basis = np.vstack([model.components_, model.normals_])
    assert_allclose(basis @ basis.T, np.eye(12), atol=1e-12)
    assert model.directions_.shape == (model.n_starts_, 12)
    assert_allclose(np.linalg.norm(model.directions_, axis=1), 1, atol=1e-12)
    assert_allclose(model.singular_values_, np.linalg.svd(model.directions_, compute_uv=False))
    assert_allclose(model.objective_, np.mean(np.abs(X @ model.directions_.T)))
    # Pythagoras: coordinates in the subspace and distance to it make up the norm.
    inside = np.linalg.norm(model.transform(X), axis=1)
    assert_allclose(inside**2 + model.distance(X) ** 2, np.sum(X**2, axis=1), atol=1e-12)
    assert_allclose(model.distance(3.0 * X), 3.0 * model.distance(X))
    assert_allclose(model.score_samples(3.0 * X), model.score_samples(X))
    projected = model.inverse_transform(model.transform(X))
    assert_allclose(projected @ model.normals_.T, 0, atol=1e-12)
    assert_allclose(model.distance(projected), 0, atol=1e-12)


def test_components_are_ordered_by_the_inliers_variance() -> None:
    data = make_subspace(500, 500, n_features=8, codimension=2, stretch=0.3, random_state=0)
    model = DPCP(random_state=0).fit(data.X)
    variances = np.mean(model.transform(data.X[data.y == 1]) ** 2, axis=0)
    assert np.all(np.diff(variances) <= 1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options", [{"refine": False}, {"codimension": 3}, {"codimension": 3, "refine": False}], ids=str
)
def test_components_and_normals_are_orthogonal_without_a_finish_too(options: dict) -> None:
    X = make_subspace(200, 300, n_features=12, codimension=4, noise=0.3, random_state=0).X
    X = np.hstack([X, np.zeros((500, 2))])
    for given in (options, {**options, "init": np.eye(14)[:12]}):
        model = DPCP(random_state=1, **given).fit(X)
        basis = np.vstack([model.components_, model.normals_])
        assert_allclose(basis @ basis.T, np.eye(14), atol=1e-10)


def test_labels_follow_from_the_threshold(model, data) -> None:
    distance = -model.score_samples(data.X)
    assert_array_equal(model.labels_, np.where(distance <= model.threshold_, 1, -1))
    assert_array_equal(model.predict(data.X), model.labels_)
    assert_array_equal(np.sign(model.decision_function(data.X)) >= 0, model.labels_ == 1)
    assert model.offset_ == -model.threshold_
    strict = model.predict(data.X, threshold=np.median(distance))
    assert np.mean(strict == 1) == pytest.approx(0.5, abs=0.01)
    assert np.all(model.predict(data.X, threshold=0.0) == -1)


def test_a_given_threshold_or_contamination_sets_the_labels(data) -> None:
    fixed = DPCP(threshold=0.3, random_state=1).fit(data.X)
    assert fixed.threshold_ == 0.3
    for share in (0.1, 0.5, 0.9):
        given = DPCP(contamination=share, random_state=1).fit(data.X)
        assert np.mean(given.labels_ == -1) == pytest.approx(share, abs=2 / len(data.X))


def test_euclidean_distances_decide_without_normalising(data) -> None:
    sizes = np.random.default_rng(0).uniform(1, 5, (len(data.X), 1))
    model = DPCP(normalize=False, random_state=0).fit(data.X * sizes)
    assert model.codimension_ == 4
    X = data.X * sizes
    assert_allclose(model.score_samples(X), -model.distance(X))


def test_the_same_seed_gives_the_same_result_bit_by_bit(data) -> None:
    one, two = (DPCP(random_state=5).fit(data.X) for _ in range(2))
    for name, value in vars(one).items():
        if name.endswith("_") and isinstance(value, np.ndarray):
            assert_array_equal(value, getattr(two, name), err_msg=name)
    other = DPCP(random_state=6).fit(data.X)
    assert not np.array_equal(one.directions_, other.directions_)


def test_threads_and_order_of_rows_do_not_change_a_sure_result(data) -> None:
    base = DPCP(random_state=5).fit(data.X)
    assert base.confidence_ >= 0.95
    for blas_threads in (1, 2, 4):
        with threadpool_limits(blas_threads, "blas"):
            other = DPCP(random_state=5).fit(data.X)
        assert other.codimension_ == base.codimension_
        assert_array_equal(other.labels_, base.labels_)
    threads = DPCP(random_state=5, n_jobs=2).fit(data.X)
    assert_array_equal(threads.directions_, base.directions_)
    order = np.random.default_rng(0).permutation(len(data.X))
    permuted = DPCP(random_state=5).fit(data.X[order])
    assert permuted.codimension_ == base.codimension_
    assert_array_equal(permuted.labels_, base.labels_[order])


@pytest.mark.parametrize(
    "options", [{"block_rows": 7}, {"block_rows": 10_000}, {"memory_budget": 0}]
)
def test_blocks_and_memory_do_not_change_a_sure_result(data, options: dict) -> None:
    raw = 2.0 * data.X  # not of unit norm, so that the budget decides about a copy
    base = dpcp(as_rows(raw), rng=np.random.default_rng(0))
    other = dpcp(as_rows(raw, **options), rng=np.random.default_rng(0))
    assert base.confidence >= 0.95
    assert other.normals.shape == base.normals.shape
    assert subspace_error(other.normals.T, base.normals.T) < 1e-6
    labels = [
        np.linalg.norm(data.X @ solution.normals, axis=1) <= solution.groups.threshold
        for solution in (base, other)
    ]
    assert_array_equal(*labels)
    if "memory_budget" in options:
        assert_array_equal(other.normals, base.normals)


def test_single_precision_in_single_precision_out() -> None:
    data = make_subspace(300, 300, n_features=10, codimension=3, random_state=0)
    model = DPCP(random_state=0).fit(data.X.astype(np.float32))
    assert model.codimension_ == 3
    assert model.confidence_ >= 0.95
    assert subspace_error(model.normals_.astype(float), data.normals) < 1e-5
    for array in (model.components_, model.normals_, model.directions_, model.location_):
        assert array.dtype == np.float32
    X = data.X.astype(np.float32)
    assert model.transform(X).dtype == model.score_samples(X).dtype == np.float32
    assert_array_equal(model.labels_, data.y)


def test_a_weight_counts_like_repetition(data) -> None:
    weight = np.random.default_rng(0).integers(0, 4, len(data.X))
    weighted = DPCP(random_state=0).fit(data.X, sample_weight=weight)
    repeated = DPCP(random_state=0).fit(np.repeat(data.X, weight, axis=0))
    assert weighted.codimension_ == repeated.codimension_ == 4
    assert subspace_error(weighted.normals_, repeated.normals_) < 1e-7
    assert weighted.threshold_ == pytest.approx(repeated.threshold_)
    assert weighted.noise_ == pytest.approx(repeated.noise_)


def test_weights_can_silence_the_outliers() -> None:
    data = make_subspace(100, 900, n_features=10, codimension=2, random_state=0)
    model = DPCP(random_state=0).fit(data.X, sample_weight=(data.y == 1).astype(float))
    assert model.codimension_ == 2
    assert subspace_error(model.normals_, data.normals) < 1e-9
    assert_array_equal(model.labels_, data.y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_given_codimension_is_kept(data) -> None:
    for codimension in (0, 1, 4, 6, 12):
        model = DPCP(codimension=codimension, random_state=0).fit(data.X)
        assert model.codimension_ == len(model.normals_) == codimension
        assert len(model.components_) == 12 - codimension
    assert model.n_components_ == 0
    assert_allclose(-model.score_samples(data.X), 1)


def test_one_spectral_start() -> None:
    data = make_subspace(300, 300, n_features=10, codimension=1, random_state=0)
    model = DPCP(codimension=1, n_starts=1, init="spectral").fit(data.X)
    assert model.n_starts_ == 1
    assert subspace_error(model.normals_, data.normals) < 1e-9


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_a_step_rule_object_carries_its_constants(data) -> None:
    rule = MBLSStep(mu0=1e-3)
    model = DPCP(step=rule, max_iter=5, random_state=0, n_starts=4).fit(data.X)
    other = DPCP(step="mbls", max_iter=5, random_state=0, n_starts=4).fit(data.X)
    assert not np.allclose(model.directions_, other.directions_)
    assert DPCP(step=AutoStep(), random_state=0).fit(data.X).codimension_ == 4


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_callback_hears_of_progress_and_can_end_a_stage(data) -> None:
    heard: list[Progress] = []
    DPCP(random_state=0, callback=heard.append).fit(data.X)
    assert {p.stage for p in heard} == {"descent", "finish"}
    assert all(0 <= p.change <= 1 for p in heard if p.stage == "descent")
    stopped: list[Progress] = []

    def stop(progress: Progress) -> bool:
        stopped.append(progress)
        return True

    DPCP(random_state=0, n_starts=16, callback=stop).fit(data.X)
    # One step of each stage; the descents of the whitened rows are a stage of their own.
    assert sum(p.stage == "descent" for p in stopped) <= 2
    assert all(p.step == 1 for p in stopped)


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_running_out_of_iterations_warns(data) -> None:
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        DPCP(max_iter=2, refine=False, random_state=0).fit(data.X)


def test_summary_has_the_result(model) -> None:
    text = model.summary()
    assert "dimension 8, codimension 4" in text
    assert "(sure)" in text
    assert "450 of 750 rows (60.0%)" in text


def test_evidence_names_its_numbers(model) -> None:
    evidence = model.evidence_
    assert evidence["directions_rank"] == 4
    assert evidence["rows_on_subspace"] >= 290
    heights = evidence["objective_per_direction"]
    assert np.min(heights[4:]) > 1.2 * np.max(heights[:4])  # the objective rises at the rank
    assert evidence["gain"] > evidence["gain_needed"]
    spectrum = evidence["inlier_spectrum"]
    ratios = np.sort(spectrum[1:] / spectrum[:-1])
    assert_allclose([evidence["inlier_gap_runner_up"], evidence["inlier_gap"]], ratios[-2:])


def test_rounding_errors_make_no_second_gap() -> None:
    exact = make_subspace(300, 450, n_features=12, codimension=4, random_state=0)
    evidence = DPCP(random_state=1).fit(exact.X).evidence_
    assert evidence["inlier_gap"] > 1e5
    assert evidence["inlier_gap_runner_up"] < 2


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_starts": 0},
        {"step": "steepest"},
        {"init": "pca"},
        {"tol": 0.0},
        {"max_iter": 0},
        {"refine": "yes"},
        {"threshold": -1.0},
        {"contamination": 1.0},
        {"contamination": -0.1},
        {"threshold": 0.1, "contamination": 0.1},
        {"codimension": 13},
        {"codimension": 5, "n_starts": 4},
        {"init": np.ones((2, 5))},
        {"init": np.zeros((2, 12))},
        {"init": np.full((2, 12), np.nan)},
        {"init": np.eye(12)[:3], "n_starts": 4},
        {"init": np.eye(12)[:3], "codimension": 4},
    ],
    ids=str,
)
def test_bad_parameters_are_named(data, parameters: dict) -> None:
    with pytest.raises(ValueError, match="|".join(parameters)):
        DPCP(**parameters).fit(data.X)


def spoiled(value: float) -> np.ndarray:
    X = np.ones((5, 3))
    X[2, 1] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (spoiled(np.nan), r"NaN: 1 entry in 1 row.*row 2, column 1.*impute"),
        (spoiled(np.inf), r"inf: 1 entry.*row 2, column 1"),
        ([["1", "2"], ["3", "four"]], r"X\[1, 1\] is 'four'.*Encode"),
        (np.ones((3, 2)) * 1j, "Complex data not supported.*real part"),
        (np.empty((0, 3)), "0 sample"),
        (np.empty((3, 0)), "0 feature"),
        (np.ones(4), r"Expected 2D array.*reshape"),
    ],
    ids=["nan", "inf", "text", "complex", "no rows", "no columns", "1-D"],
)
def test_bad_data_gets_problem_place_and_fix(X, message: str) -> None:
    with pytest.raises(ValueError, match="(?s)" + message):
        DPCP().fit(X)


def test_a_unit_matrix_has_no_subspace_and_no_overflow() -> None:
    from scipy.sparse import eye_array

    for X in (np.eye(5), eye_array(5).tocsr()):
        with pytest.warns(UserWarning, match="not sure"):
            assert DPCP(random_state=0).fit(X).codimension_ == 0


def test_column_names_appear_in_errors_and_outputs(data) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=[f"band {i}" for i in range(12)])
    model = DPCP(random_state=0).fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert list(model.get_feature_names_out()) == [f"dpcp{i}" for i in range(8)]
    assert model.set_output(transform="pandas").transform(frame).shape == (750, 8)
    frame.iloc[3, 7] = np.nan
    with pytest.raises(InputError, match='row 3, column "band 7"'):
        model.predict(frame)


def test_wrong_widths_are_named(model) -> None:
    with pytest.raises(ValueError, match="12 features"):
        model.predict(np.ones((3, 5)))
    with pytest.raises(InputError, match=r"expected \(n_samples, 8\)"):
        model.inverse_transform(np.ones((3, 5)))
