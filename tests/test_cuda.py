"""On a GPU the results are those of the processor. Needs torch with CUDA, and nothing for tests but
pytest: bare machines with a GPU should be able to run this file.
"""

import importlib.util
import sys

import numpy as np
import pytest

from helpers import assert_same_subspace
from perpend import DPCP, DPCPIRLS, RSGM, RecursiveDPCP
from perpend.datasets import make_subspace
from perpend.exceptions import DeviceMemoryError, InputError
from perpend.kernels import distances, gram, l1_objective_and_gradient
from perpend.rows import as_rows
from perpend.rows.kinds import to_numpy

torch = pytest.importorskip("torch", reason="torch is not installed")
if importlib.util.find_spec("array_api_compat") is None:  # scikit-learn carries a copy
    sys.modules["array_api_compat"] = pytest.importorskip("sklearn.externals.array_api_compat")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
DEVICE = "cuda:0"
METHODS = {
    "DPCP": DPCP(random_state=0),
    "given": DPCP(codimension=5, random_state=0, step="mbls", refine=False, n_starts=8),
    "RSGM": RSGM(codimension=5),
    "DPCPIRLS": DPCPIRLS(codimension=5),
    "RecursiveDPCP": RecursiveDPCP(codimension=5),
}
ARRAYS = ("components_", "normals_", "location_", "intercept_", "directions_", "labels_")
USES = ("transform", "distance", "score_samples", "decision_function", "predict")


def rows_of_inliers_and_outliers(noise):
    data = make_subspace(2000, 3000, n_features=30, codimension=5, noise=noise, random_state=0)
    return data.X * np.random.default_rng(0).uniform(1, 5, (5000, 1))


@pytest.fixture(name="X", scope="module")
def noisy():
    return rows_of_inliers_and_outliers(0.01)


@pytest.fixture(scope="module")
def exact():
    return rows_of_inliers_and_outliers(0.0)


def fitted(name, X, **options):
    return METHODS[name].__sklearn_clone__().set_params(**options).fit(X)


# -- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("budget", [0, None])
def test_sums_are_those_of_numpy_rows(dtype, normalize, budget, X) -> None:
    weight = np.random.default_rng(1).uniform(size=len(X))
    given = X.astype(dtype)
    options = {"weight": weight, "normalize": normalize}
    rows = as_rows(torch.tensor(given, device=DEVICE), memory_budget=budget, fused=False, **options)
    plain = as_rows(given.astype(np.float64), **options)
    B = np.linalg.qr(np.random.default_rng(2).standard_normal((30, 7)))[0]
    tol = 1e-12 if dtype == np.float64 else 1e-5
    for kernel, *params in ((gram,), (l1_objective_and_gradient, B)):
        scan, expected = rows.scan(kernel, *params), plain.scan(kernel, *params)
        scale = np.max(np.abs(expected.product))
        # in single precision the sign of a product near zero may be another one
        flips = 0 if dtype == np.float64 else 4 * np.max(weight)
        atol = tol * scale + flips
        np.testing.assert_allclose(scan.product, expected.product, rtol=0, atol=atol)
        if expected.total is not None:
            np.testing.assert_allclose(scan.total, expected.total, rtol=tol)
    kept, other = (r.scan(distances, B, keep=True).kept for r in (rows, plain))
    np.testing.assert_allclose(rows.gather(kept), plain.gather(other), rtol=0, atol=100 * tol)
    np.testing.assert_allclose(rows.take(np.arange(9)), plain.take(np.arange(9)), rtol=tol)


def test_fused_products_are_as_precise_as_they_say(X) -> None:
    rows, plain = as_rows(torch.tensor(X, device=DEVICE)), as_rows(X)
    B = np.linalg.qr(np.random.default_rng(2).standard_normal((30, 16)))[0]
    scan, expected = (r.scan(l1_objective_and_gradient, B) for r in (rows, plain))
    np.testing.assert_allclose(scan.total, expected.total, rtol=4 * rows.precision)
    # a row whose product is below the precision may have either sign, and counts double then
    unsure = np.sum(np.abs(plain.take(np.arange(len(X))) @ B) < 16 * rows.precision, axis=0)
    error = np.linalg.norm(scan.product - expected.product, axis=1)
    assert np.all(error <= 2 * unsure + 16 * rows.precision * np.linalg.norm(expected.product))


def test_tf32_is_not_used_and_the_setting_stays(X) -> None:
    given = torch.tensor(X, dtype=torch.float32, device=DEVICE)
    expected = as_rows(given, fused=False).scan(gram).product
    torch.set_float32_matmul_precision("medium")
    try:
        got = as_rows(given, fused=False).scan(gram).product
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
    np.testing.assert_array_equal(got, expected)


# -- methods --------------------------------------------------------------------------------------


# Only a finish makes the result on noisy rows independent of rounding, and it leaves undone what
# is below 5 % of the noise's own error, 0.01 sqrt(25 * 30 / 2000) = 0.006.
@pytest.mark.parametrize(("name", "rows"), [*((m, "exact") for m in METHODS), ("DPCP", "X")])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_results_of_the_processor(name, rows, normalize, request) -> None:
    X = request.getfixturevalue(rows)
    given = torch.tensor(X, device=DEVICE)
    model, plain = (fitted(name, Z, normalize=normalize) for Z in (given, X))
    assert model.codimension_ == plain.codimension_ == 5
    tol = 1e-8 if rows == "exact" else 0.05 * 0.006
    assert_same_subspace(to_numpy(model.normals_), plain.normals_, tol)
    np.testing.assert_array_equal(to_numpy(model.labels_), plain.labels_)
    for attribute in ARRAYS:
        assert getattr(model, attribute).device == given.device, attribute
    np.testing.assert_array_equal(to_numpy(given), X)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_single_precision(name, X) -> None:
    model = fitted(name, torch.tensor(X, dtype=torch.float32, device=DEVICE))
    plain = fitted(name, X.astype(np.float32))
    assert model.codimension_ == plain.codimension_
    assert_same_subspace(to_numpy(model.normals_), plain.normals_, 1e-3)
    assert np.mean(to_numpy(model.labels_) != plain.labels_) < 1e-3


def test_the_same_seed_gives_the_same_bits(X) -> None:
    one, two = (fitted("DPCP", torch.tensor(X, device=DEVICE)) for _ in range(2))
    for attribute in ARRAYS:
        assert torch.equal(getattr(one, attribute), getattr(two, attribute)), attribute


def test_numpy_in_numpy_out(X) -> None:
    model, plain = fitted("DPCP", X, device="cuda"), fitted("DPCP", X)
    for attribute in ARRAYS:
        assert isinstance(getattr(model, attribute), np.ndarray), attribute
    assert_same_subspace(model.normals_, plain.normals_, 1e-8)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    for use in USES:
        got, expected = getattr(model, use)(X), getattr(plain, use)(X)
        assert isinstance(got, np.ndarray), use
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6, err_msg=use)
    in_memory = fitted("DPCP", torch.tensor(X), device="cuda")
    assert in_memory.normals_.device.type == in_memory.predict(torch.tensor(X)).device.type == "cpu"


def test_a_model_goes_from_one_device_to_another(X, tmp_path) -> None:
    given = torch.tensor(X, device=DEVICE)
    on_gpu, on_cpu = fitted("DPCP", given), fitted("DPCP", X)
    for use in USES:
        there = getattr(on_cpu, use)(given)
        assert there.device == given.device, use
        here = getattr(on_gpu, use)(X)
        assert isinstance(here, np.ndarray), use
        np.testing.assert_allclose(to_numpy(there), here, rtol=0, atol=1e-6, err_msg=use)
    back = on_cpu.inverse_transform(on_cpu.transform(given))
    assert back.device == given.device
    on_gpu.save(tmp_path / "model.npz")
    from perpend import load

    np.testing.assert_array_equal(load(tmp_path / "model.npz").predict(X), to_numpy(on_gpu.labels_))


def test_weights_on_the_gpu(X) -> None:
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    given = torch.tensor(X, device=DEVICE)
    model = DPCP(random_state=0).fit(given, sample_weight=torch.tensor(weight, device=DEVICE))
    plain = DPCP(random_state=0).fit(X, sample_weight=weight)
    assert_same_subspace(to_numpy(model.normals_), plain.normals_, 1e-7)


@pytest.mark.parametrize("affine", [False, True])
def test_blocks_of_dask_are_computed_on_the_gpu(affine, X) -> None:
    array = pytest.importorskip("dask.array", reason="dask is not installed")
    model = DPCP(random_state=0, affine=affine).fit(X)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.max_memory_allocated()
    lazy = array.from_array(X, chunks=(1000, -1))
    other = DPCP(random_state=0, affine=affine, device=DEVICE).fit(lazy)
    assert torch.cuda.max_memory_allocated() > before  # the blocks were there
    assert other.codimension_ == model.codimension_
    assert_same_subspace(other.normals_, model.normals_, 1e-8)
    np.testing.assert_array_equal(other.labels_, model.labels_)


# -- errors ---------------------------------------------------------------------------------------


def test_mixed_devices_are_named(X) -> None:
    given = torch.tensor(X, device=DEVICE)
    with pytest.raises(InputError, match="sample_weight is on cpu and X is on cuda:0"):
        DPCP().fit(given, sample_weight=torch.ones(len(X)))
    with pytest.raises(InputError, match="sample_weight is on cuda:0 and X is on cpu"):
        DPCP().fit(X, sample_weight=torch.ones(len(X), device=DEVICE))
    with pytest.raises(InputError, match="init is on cpu and X is on cuda:0"):
        DPCP(init=torch.eye(30)).fit(given)


def test_a_gpu_beyond_the_last_is_named(X) -> None:
    n = torch.cuda.device_count()
    with pytest.raises(InputError, match=f"the last of {n} GPUs is cuda:{n - 1}"):
        DPCP(device=f"cuda:{n}").fit(X)


def test_entries_that_are_not_finite_are_found_on_the_gpu(X) -> None:
    given = torch.tensor(X, device=DEVICE)
    given[17, 3] = torch.nan
    with pytest.raises(InputError, match=r"NaN: 1 entry in 1 row.*row 17, column 3"):
        DPCP().fit(given)


def test_a_full_gpu_loses_nothing() -> None:
    X = np.random.default_rng(0).standard_normal((400_000, 64))
    model = DPCP(codimension=1, n_starts=1, max_iter=2, device="cuda")
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(0.5 * X.nbytes / total)
    try:
        with pytest.raises(DeviceMemoryError, match=r"cuda is out of memory .* GiB are free"):
            model.fit(X)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert [name for name in vars(model) if name.endswith("_")] == []
    assert model.fit(X).codimension_ == 1
