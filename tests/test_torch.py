"""Tensors in, tensors out: every method gives the same results on a tensor and on a NumPy array.

Where results are compared, tensors are read in both ways: as NumPy arrays, which is the rule for
tensors in memory, and by torch itself, as on a GPU.
"""

import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import perpend.methods
from helpers import assert_same_subspace
from perpend import DPCP, RSGM, load
from perpend.datasets import make_subspace
from perpend.estimator import METHODS
from perpend.exceptions import DeviceMemoryError, InputError, MissingExtraError, PerpendError
from perpend.rows import journal, kinds

torch = pytest.importorskip("torch", reason="torch is not installed")

from perpend.rows.torch import TorchRows  # noqa: E402

ARRAYS = (
    *("components_", "normals_", "location_", "intercept_"),
    *("directions_", "singular_values_", "labels_"),
)
NUMBERS = ("threshold_", "offset_", "noise_", "objective_", "confidence_")


@pytest.fixture(params=["as NumPy", "by torch"])
def reading(request, monkeypatch):
    """How tensors in memory are read."""
    if request.param == "by torch":
        monkeypatch.setattr(kinds, "READ_AS_NUMPY", set())
    return request.param


@pytest.fixture(name="X", scope="module")
def rows_of_inliers_and_outliers():
    data = make_subspace(200, 300, n_features=8, codimension=3, noise=0.01, random_state=0)
    return data.X * np.random.default_rng(0).uniform(1, 5, (500, 1))


def make(name, **options):
    given = {} if name == "DPCP" else {"codimension": 3}
    return METHODS[name](random_state=0, **given, **options)


def assert_same_result(model, plain, tol):
    """Codimension, labels and subspace are the same; numbers agree as far as `tol`."""
    assert model.codimension_ == plain.codimension_
    assert_same_subspace(kinds.to_numpy(model.normals_), kinds.to_numpy(plain.normals_), tol)
    np.testing.assert_array_equal(kinds.to_numpy(model.labels_), kinds.to_numpy(plain.labels_))
    for name in NUMBERS:
        assert type(getattr(model, name)) is float
        assert getattr(model, name) == pytest.approx(getattr(plain, name), rel=100 * tol, abs=tol)


def assert_tensors(model, dtype=torch.float64):
    for name in ARRAYS:
        value = getattr(model, name)
        assert isinstance(value, torch.Tensor), name
        assert not value.requires_grad
        assert value.dtype == (torch.int64 if name == "labels_" else dtype), name


# -- the same results -----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # slow with noise
@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("normalize", [True, False])
def test_tensors_get_the_results_of_numpy(name, normalize, X, reading) -> None:
    given = torch.tensor(X)
    model = make(name, normalize=normalize).fit(given)
    assert_tensors(model)
    assert_same_result(model, make(name, normalize=normalize).fit(X), 1e-8)
    np.testing.assert_array_equal(given.numpy(), X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", sorted(METHODS))
def test_single_precision(name, X, reading) -> None:
    model = make(name).fit(torch.tensor(X, dtype=torch.float32))
    plain = make(name).fit(X.astype(np.float32))
    assert_tensors(model, torch.float32)
    assert model.codimension_ == plain.codimension_
    assert_same_subspace(model.normals_, plain.normals_, 1e-3)
    np.testing.assert_array_equal(model.labels_, plain.labels_)


def test_every_method_takes_a_device() -> None:
    for name in METHODS:
        assert METHODS[name](device="cpu").get_params()["device"] == "cpu"
    assert set(METHODS) <= set(perpend.methods.__all__)


@pytest.mark.parametrize("as_tensor", [True, False])
def test_weights(as_tensor, X, reading) -> None:
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    given = torch.tensor(weight) if as_tensor else weight
    model = make("DPCP").fit(torch.tensor(X), sample_weight=given)
    assert_same_result(model, make("DPCP").fit(X, sample_weight=weight), 1e-8)
    mixed = make("DPCP").fit(X, sample_weight=given)  # NumPy rows, weights of either kind
    assert isinstance(mixed.normals_, np.ndarray)
    assert_same_result(mixed, model, 1e-8)


def test_rows_of_weight_zero_are_absent(X, reading) -> None:
    mask = np.arange(len(X)) % 3 > 0
    model = make("DPCP").fit(torch.tensor(X), sample_weight=torch.tensor(mask, dtype=torch.float32))
    plain = make("DPCP").fit(X[mask])
    assert model.codimension_ == plain.codimension_
    assert_same_subspace(model.normals_, plain.normals_, 1e-7)
    assert len(model.labels_) == len(X)


@pytest.mark.parametrize("given", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_single(given, X, reading) -> None:
    half = torch.tensor(X).to(getattr(torch, given))
    model = make("DPCP").fit(half)
    assert_tensors(model, torch.float32)
    assert model.transform(half).dtype == torch.float32
    assert_same_result(model, make("DPCP").fit(half.to(torch.float32)), 1e-12)


def test_integers_are_computed_in_double(X) -> None:
    whole = torch.tensor(np.rint(20 * X), dtype=torch.int16)
    model = make("DPCP", codimension=2).fit(whole)
    assert_tensors(model, torch.float64)
    plain = make("DPCP", codimension=2).fit(whole.numpy())
    assert_same_result(model, plain, 1e-8)


def test_contamination_and_thresholds(X, reading) -> None:
    for options in ({"contamination": 0.4}, {"threshold": 0.2}):
        model, plain = (make("DPCP", **options).fit(Z) for Z in (torch.tensor(X), X))
        assert model.threshold_ == pytest.approx(plain.threshold_, rel=1e-8)
        np.testing.assert_array_equal(model.labels_, plain.labels_)


def test_directions_to_begin_with_may_be_a_tensor(X) -> None:
    init = np.random.default_rng(0).standard_normal((6, 8))
    for name in ("DPCP", "RSGM"):
        options = {"codimension": 3, "init": init[:3] if name == "RSGM" else init}
        plain = METHODS[name](**options).fit(X)
        options["init"] = torch.tensor(options["init"])
        assert_same_result(METHODS[name](**options).fit(torch.tensor(X)), plain, 1e-8)


def test_nobody_who_has_no_tensor_waits_for_torch() -> None:
    code = (
        "import sys, numpy as np; from perpend import DPCP; "
        "model = DPCP(codimension=1, random_state=0).fit(np.eye(5)[:, :3] + 1); "
        "model.predict(np.ones((2, 3))); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False"], done.stderr


# -- using a model --------------------------------------------------------------------------------

USES = ("transform", "distance", "score_samples", "decision_function", "predict")
USES += ("outlier_probability", "explain")


@pytest.mark.parametrize("normalize", [True, False])
def test_results_are_of_the_kind_that_is_passed(normalize, X, reading) -> None:
    T = torch.tensor(X)
    fitted_on_tensor = make("DPCP", normalize=normalize).fit(T)
    fitted_on_numpy = make("DPCP", normalize=normalize).fit(X)
    for model in (fitted_on_tensor, fitted_on_numpy):
        for use in USES:
            on_tensor, on_numpy = getattr(model, use)(T), getattr(model, use)(X)
            assert isinstance(on_tensor, torch.Tensor), use
            assert isinstance(on_numpy, np.ndarray), use
            assert not on_tensor.requires_grad
            np.testing.assert_allclose(on_tensor.numpy(), on_numpy, rtol=1e-12, atol=1e-14)
        back = model.inverse_transform(model.transform(T))
        assert isinstance(back, torch.Tensor)
        np.testing.assert_allclose(
            back.numpy(), model.inverse_transform(model.transform(X)), atol=1e-12
        )
        np.testing.assert_array_equal(
            model.predict(T, threshold=0.3), model.predict(X, threshold=0.3)
        )
    assert torch.equal(fitted_on_tensor.predict(T), fitted_on_tensor.labels_)
    assert torch.equal(make("DPCP", normalize=normalize).fit_predict(T), fitted_on_tensor.labels_)
    both = make("DPCP", normalize=normalize).fit_transform(T)
    np.testing.assert_allclose(both, fitted_on_tensor.transform(T), atol=1e-12)
    assert fitted_on_tensor.summary() == fitted_on_numpy.summary()


def test_a_model_of_another_precision_can_be_used(X, reading) -> None:
    double, single = torch.tensor(X), torch.tensor(X, dtype=torch.float32)
    model = make("DPCP").fit(double)
    assert model.transform(single).dtype == model.score_samples(single).dtype == torch.float32
    np.testing.assert_allclose(model.transform(single), model.transform(double), atol=1e-4)
    other = make("DPCP").fit(single)
    assert other.transform(double).dtype == other.score_samples(double).dtype == torch.float64


# -- the device -----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), "cpu:0"], ids=repr)
def test_numpy_in_numpy_out_with_a_device(device, X, reading, monkeypatch) -> None:
    seen = []
    scan = TorchRows.scan
    monkeypatch.setattr(TorchRows, "scan", lambda *a, **k: seen.append(1) or scan(*a, **k))
    given = X[::-1]  # torch can't share a view that runs backward
    given.flags.writeable = False
    model = make("DPCP", device=device).fit(given)
    for name in ARRAYS:
        assert isinstance(getattr(model, name), np.ndarray), name
    assert_same_result(model, make("DPCP").fit(given), 1e-8)
    for use in USES:
        assert isinstance(getattr(model, use)(given), np.ndarray), use
    assert isinstance(model.inverse_transform(model.transform(given)), np.ndarray)
    assert bool(seen) == (reading == "by torch")
    assert isinstance(model.transform(torch.tensor(X)), torch.Tensor)


def test_frames_keep_their_names_with_a_device(X) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"band {i}" for i in range(8)])
    model = make("DPCP", device="cpu").fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    frame.iloc[4, 2] = np.nan
    with pytest.raises(InputError, match='row 4, column "band 2"'):
        model.predict(frame)


def test_an_interrupted_fit_goes_on(X, reading, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(journal, "BYTES_PER_SECOND", np.inf)

    def interrupt(progress) -> None:
        if progress.step == 8:
            raise KeyboardInterrupt

    rows, path = torch.from_numpy(X), tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        RSGM(codimension=3, random_state=0, callback=interrupt).fit(rows, checkpoint=path)
    once = RSGM(codimension=3, random_state=0).fit(rows)
    resumed = RSGM(codimension=3, random_state=0).fit(rows, checkpoint=path)
    for name in ("normals_", "components_", "labels_"):
        assert torch.equal(getattr(once, name), getattr(resumed, name))
    assert once.threshold_ == resumed.threshold_


def test_clones_copies_pickles_and_files(X, tmp_path) -> None:
    T = torch.tensor(X)
    model = make("DPCP", device=torch.device("cpu"), init=torch.eye(8, dtype=torch.float64)).fit(T)
    assert clone(model).get_params()["device"] == torch.device("cpu")
    for same in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(same.normals_, model.normals_)
        assert torch.equal(same.predict(T), model.labels_)
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz")
    assert loaded.device == "cpu"
    for name in ARRAYS:
        value = getattr(loaded, name)
        assert isinstance(value, np.ndarray), name
        np.testing.assert_array_equal(value, getattr(model, name).numpy())
    assert isinstance(loaded.init, np.ndarray)
    assert torch.equal(loaded.predict(T), model.labels_)
    assert_same_result(clone(loaded).fit(T), model, 1e-8)


# -- errors ---------------------------------------------------------------------------------------


def spoiled(value):
    T = torch.ones((5, 3), dtype=torch.float64)
    T[2, 1] = T[4, 0] = value
    return T


@pytest.mark.parametrize(
    "bad",
    [
        spoiled(torch.nan),
        spoiled(torch.inf),
        torch.ones((3, 2), dtype=torch.complex64),
        torch.ones((3, 2), dtype=torch.complex128),
        torch.ones((0, 3)),
        torch.ones((3, 0)),
        torch.ones(4),
        torch.ones((2, 2, 2)),
        torch.ones((1, 4)),
    ],
    ids=["nan", "inf", "complex", "long complex", "no rows", "no columns", "1-D", "3-D", "one row"],
)
def test_bad_tensors_get_the_messages_of_bad_arrays(bad, reading) -> None:
    errors = []
    for given in (bad, bad.numpy()):
        with pytest.raises(ValueError, match=r"\w") as caught:
            DPCP().fit(given)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


def test_another_number_of_features_gets_the_message_of_arrays(X) -> None:
    model = make("DPCP").fit(torch.tensor(X))
    with pytest.raises(ValueError, match="4 features, but DPCP is expecting 8 features"):
        model.predict(torch.tensor(X[:, :4]))
    with pytest.raises(InputError, match=r"shape \(500, 8\); expected \(n_samples, 5\)"):
        model.inverse_transform(torch.tensor(X))


def test_a_tensor_that_requires_grad_is_refused(X) -> None:
    T = torch.tensor(X, requires_grad=True)
    with pytest.raises(InputError, match=r"X requires grad.*X\.detach\(\)"):
        DPCP().fit(T)
    model = make("DPCP").fit(T.detach())
    for use in (*USES, "inverse_transform"):
        with pytest.raises(InputError, match="detach"):
            getattr(model, use)(T[:, :5] if use == "inverse_transform" else T)
    with pytest.raises(InputError, match=r"sample_weight requires grad"):
        DPCP().fit(T.detach(), sample_weight=torch.ones(500, requires_grad=True))


def test_a_sparse_tensor_is_refused(X) -> None:
    with pytest.raises(InputError, match=r"sparse.*to_dense"):
        DPCP().fit(torch.tensor(X).to_sparse())


def test_everything_must_be_on_one_device(X) -> None:
    elsewhere = torch.ones(500, device="meta")  # another device that every machine has
    for given in (torch.tensor(X), X):
        with pytest.raises(InputError, match=r"sample_weight is on meta and X is on cpu.*\.to\("):
            DPCP().fit(given, sample_weight=elsewhere)
        with pytest.raises(InputError, match=r"init is on meta and X is on cpu"):
            DPCP(init=torch.eye(8, device="meta")).fit(given)


@pytest.mark.parametrize(
    "weight", [-torch.ones(500), torch.ones(499), torch.full((500,), torch.nan)]
)
def test_bad_weights_get_the_messages_of_arrays(weight, X) -> None:
    messages = []
    for rows, given in ((torch.tensor(X), weight), (X, weight.numpy())):
        with pytest.raises(ValueError, match="weight") as caught:
            DPCP().fit(rows, sample_weight=given)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_device_that_is_none_is_named(X) -> None:
    with pytest.raises(InputError, match=r"device='gpu9' is not known to torch.*device=None"):
        DPCP(device="gpu9").fit(X)
    for wrong in (0, 1.5, ["cuda"]):
        with pytest.raises(ValueError, match="'device' parameter of DPCP must be"):
            DPCP(device=wrong).fit(X)


def test_a_gpu_that_is_not_there_is_named(X, monkeypatch) -> None:
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    with pytest.raises(InputError, match=r"device='cuda'.*built without CUDA.*device=None"):
        DPCP(device="cuda").fit(X)
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(InputError, match=r"sees no GPU.*CUDA_VISIBLE_DEVICES"):
        RSGM(device="cuda:0").fit(X)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InputError, match=r"device='cuda:2', but the last of 2 GPUs is cuda:1"):
        DPCP(device="cuda:2").fit(X)


def test_a_device_without_double_precision_is_refused(X, monkeypatch) -> None:
    def refuse(*args, **options):
        raise TypeError("Cannot convert to float64. More words.\nAnd lines.")

    monkeypatch.setattr(torch, "zeros", refuse)
    with pytest.raises(InputError, match=r"can't be used: Cannot convert to float64\. Use device"):
        DPCP(device="cpu").fit(X)


@pytest.mark.parametrize("package", ["torch", "array_api_compat"])
def test_without_torch_a_device_says_what_to_install(package, X, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # importing it fails
    with pytest.raises(
        MissingExtraError, match=rf"needs {package}.*pip install 'perpend\[torch\]'"
    ):
        DPCP(device="cpu").fit(X)
    assert DPCP(random_state=0).fit(X).codimension_ == 3  # and without a device nothing is missing


def out_of_memory(*args, **options):
    raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")


def test_a_full_device_loses_nothing(X, monkeypatch, reading) -> None:
    T = torch.tensor(X)
    model, fitted = make("DPCP"), make("DPCP").fit(T)
    before = dict(vars(fitted))
    for room in ("_learned", "_fitted"):  # late: the labels are missing
        monkeypatch.setattr(f"perpend.{room}.per_row", out_of_memory)
    for method in (model, fitted):
        with pytest.raises(DeviceMemoryError, match=r"500 rows of 8 features need about 0\.25 GiB"):
            method.fit(T)
    assert [name for name in vars(model) if name.endswith("_")] == []
    assert dict(vars(fitted)) == before
    with pytest.raises(DeviceMemoryError, match=r"sample_size.*n_starts.*device=\"cpu\"") as caught:
        fitted.predict(T)
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, PerpendError)
    assert isinstance(caught.value.__cause__, torch.cuda.OutOfMemoryError)


def test_tensors_without_numbers_are_refused():
    with pytest.raises(InputError, match="without numbers"):
        DPCP().fit(torch.empty(20, 3, device="meta"))
    with pytest.raises(InputError, match="without numbers"):
        DPCP(device="meta").fit(np.eye(20, 3))


def test_a_tensor_that_is_negated_lazily_is_read():
    z = torch.randn(200, 4, dtype=torch.complex128).conj()
    X = z.imag
    assert X.is_neg()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPCP(random_state=0).fit(X)
    assert model.labels_.shape == (200,)


@pytest.mark.parametrize("name", ["DPCP", "RSGM"])
def test_few_rows_of_many_features(name, dtype, reading):
    """They are turned into their span where they are."""
    data = make_subspace(30, 30, n_features=300, codimension=296, noise=0.02, random_state=0)
    X = data.X.astype(dtype)
    given = {} if name == "DPCP" else {"codimension": 296}
    plain = METHODS[name](random_state=0, **given).fit(X)
    model = METHODS[name](random_state=0, **given).fit(torch.tensor(X))
    assert isinstance(model.normals_, torch.Tensor)
    assert_same_result(model, plain, 1e-8 if dtype == np.float64 else 2e-3)
    assert_same_subspace(plain.components_, data.components, 0.1)


# -- other structures ------------------------------------------------------------------------------


def layers():
    rng = np.random.default_rng(0)
    X = rng.uniform([-20, -20, -1], [20, 20, 1], (3000, 3))
    X[:1200, 2] = rng.normal(0, 0.05, 1200)
    return X


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_another_structure_of_a_tensor_is_one_of_tensors(reading, dtype, tmp_path):
    X = torch.tensor(layers(), dtype=dtype)
    model = DPCP(affine=True, random_state=1000).fit(X)
    plain = DPCP(affine=True, random_state=1000).fit(X.numpy())
    slab = model.choose(-1)
    assert all(isinstance(getattr(slab, name), torch.Tensor) for name in ARRAYS)
    assert slab.labels_.dtype == model.labels_.dtype
    assert slab.normals_.dtype == dtype
    assert_same_result(slab, plain.choose(-1), 1e-4 if dtype == torch.float32 else 1e-9)
    assert torch.equal(slab.predict(X), slab.labels_)
    assert "inside it" in slab.summary()
    back = slab.choose(0)
    assert all(torch.equal(getattr(back, name), getattr(model, name)) for name in ARRAYS)
    model.save(tmp_path / "model.npz")
    loaded = load(tmp_path / "model.npz").choose(-1)
    np.testing.assert_array_equal(loaded.labels_, slab.labels_.numpy())
