"""Exported graphs agree with the model, by onnxruntime and by onnx's reference evaluator."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from perpend import DPCP, RobustStandardizer, export
from perpend.datasets import make_subspace
from perpend.estimator import METHODS
from perpend.exceptions import InputError
from perpend.export import to_onnx

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
from onnx.reference import ReferenceEvaluator  # noqa: E402

# of a distance, relative to the norm of the row
TOL = {np.dtype("f4"): 1e-6, np.dtype("f8"): 1e-12}
QUIET = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::perpend.exceptions.CodimensionWarning"
)


def by_runtime(proto, X):
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def by_reference(proto, X):
    names = [output.name for output in proto.graph.output]
    return dict(zip(names, ReferenceEvaluator(proto).run(None, {"X": X}), strict=True))


@pytest.fixture(params=[by_runtime, by_reference], ids=["onnxruntime", "reference"])
def run(request):
    return request.param


def assert_same_results(model, X, found, size=None):
    """Distances within rounding; labels equal but where rounding decides."""
    # hypot squares nothing that it has not scaled
    tol = TOL[X.dtype] * (np.hypot.reduce(X.astype(float), axis=1) if size is None else size)
    distance, score = model.distance(X), model.score_samples(X)
    assert found["distance"].dtype == found["score"].dtype == X.dtype
    assert found["label"].dtype == np.int64
    assert found["distance"].shape == found["score"].shape == found["label"].shape == (len(X),)
    assert np.all(np.abs(found["distance"].astype(float) - distance) <= tol)
    relative = model.normalize and not model.affine_
    tol = TOL[X.dtype] if relative else tol
    assert np.all(np.abs(found["score"].astype(float) - score) <= tol)
    differ = found["label"] != model.predict(X)
    assert np.all(np.abs(-score - model.threshold_)[differ] <= np.broadcast_to(tol, len(X))[differ])
    # one that follows from the graph's own numbers, without exception
    limit = X.dtype.type(model.threshold_)
    np.testing.assert_array_equal(found["label"], np.where(-found["score"] <= limit, 1, -1))


@pytest.mark.parametrize(("n", "D"), [(300, 6), (40, 30)])  # with fewer rows axes are few
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
def test_outliers_of_both_kinds(n, D, affine, dtype, run):
    """The documented pipeline for tables, in the data's own units."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, D)) * np.geomspace(1, 1e-2, D)
    X[:, -1] = X[:, 0] - X[:, 1] + 0.01 * rng.standard_normal(n)
    X[:3] = 20 * rng.standard_normal((3, D))
    X = ((X + 3.0 * affine) * np.geomspace(1e-3, 1e4, D)).astype(dtype)
    scaler = RobustStandardizer(with_centering=affine)
    model = make_pipeline(scaler, DPCP(affine=affine, outliers="both", random_state=0)).fit(X)
    proto = to_onnx(model)
    found, scaled = run(proto, X), scaler.transform(X)
    spread = model[-1]._both
    # what one rounding of the scaled rows may change, in deviations
    rounding = 20 * np.finfo(dtype).eps * np.linalg.norm(scaled, axis=1)
    least = min(np.linalg.svd(spread.root, compute_uv=False)[-1], spread.noise)
    score = model.score_samples(X)
    assert np.all(np.abs(found["score"] - score) <= rounding / least + 1e-6 * np.abs(score))
    assert np.all(np.abs(found["distance"] - model[-1].distance(scaled)) <= rounding)
    clear = np.abs(-score - model[-1].threshold_) > rounding / least
    assert clear.sum() > 0.9 * n
    np.testing.assert_array_equal(found["label"][clear], model.predict(X)[clear])
    assert np.any(found["label"] == -1)
    assert {one.key: one.value for one in proto.metadata_props}["outliers"] == "both"


def rows(D, seed, n=200):
    """Inliers, outliers, zeros and rows of all sizes that a float32 can square."""
    X = make_subspace(n, n, n_features=D, codimension=2, noise=0.01, random_state=seed).X
    rng = np.random.default_rng(seed)
    return np.vstack([X * 10.0 ** rng.uniform(-3, 3, (2 * n, 1)), np.zeros((2, D))])


@pytest.mark.parametrize("affine", [False, True])
def test_pipelines_of_scalers(affine, dtype, run):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    X[:, 4] = X[:, 0] - X[:, 1] + X[:, 2] + 0.01 * rng.standard_normal(200)
    X = ((X + 3.0 * affine) * [1.0, 1e3, 1e-3, 1.0, 1e4]).astype(dtype)
    frame = pd.DataFrame(X, columns=list("abcde"))
    steps = (MinMaxScaler(), RobustStandardizer(), DPCP(1, affine=affine, random_state=0))
    pipeline = make_pipeline(*steps).fit(frame)
    proto = to_onnx(pipeline)
    found = run(proto, X)
    scaled = pipeline[:-1].transform(frame)
    # two scalers of the pipeline round one after the other, those of the graph are one
    size = np.linalg.norm(scaled, axis=1)
    rounding = 20 * np.finfo(dtype).eps
    assert np.all(np.abs(found["distance"] - pipeline[-1].distance(scaled)) <= rounding * size)
    score = pipeline.score_samples(frame)
    tol = rounding * (size if affine else 1.0)
    assert np.all(np.abs(found["score"] - score) <= tol)
    clear = np.abs(-score - pipeline[-1].threshold_) > tol
    assert np.mean(clear) > 0.9
    np.testing.assert_array_equal(found["label"][clear], pipeline.predict(frame)[clear])
    props = {prop.key: prop.value for prop in proto.metadata_props}
    assert json.loads(props["feature_names"]) == list("abcde")


@QUIET
@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("affine", [False, True])
def test_every_method(name, normalize, affine, dtype):
    X = make_subspace(
        150, 100, n_features=6, codimension=1, noise=0.01, offset=2.0 * affine, random_state=0
    ).X.astype(dtype)
    model = METHODS[name](1, normalize=normalize, affine=affine, random_state=1000).fit(X)
    assert model.affine_ is affine
    proto = to_onnx(model)
    new = rows(6, 1).astype(dtype)
    for run in (by_runtime, by_reference):
        assert_same_results(model, X, run(proto, X))
        assert_same_results(model, new, run(proto, new), np.linalg.norm(new, axis=1) + 2)


@pytest.mark.parametrize("dtype_out", [np.float32, np.float64])
def test_the_precision_can_be_chosen(dtype, dtype_out, run, seed):
    data = make_subspace(150, 100, n_features=6, codimension=2, noise=0.01, random_state=seed)
    model = DPCP(random_state=seed + 1000).fit(data.X.astype(dtype))
    new = rows(6, seed).astype(dtype_out)
    proto = to_onnx(model, dtype=dtype_out)
    assert_same_results(model, new, run(proto, new))


@pytest.mark.parametrize("codimension", [2, 180, 195])
def test_many_features_by_normals_or_components(codimension, dtype, run, seed):
    """195 normals need 5 components: the graph holds those."""
    data = make_subspace(
        500, 200, n_features=200, codimension=codimension, noise=0.01, random_state=seed
    )
    X = data.X.astype(dtype)
    model = DPCP(codimension, random_state=seed + 1000).fit(X)
    proto = to_onnx(model)
    held = {tuple(weight.dims) for weight in proto.graph.initializer}
    assert ((200, codimension) in held) is (codimension == 2)
    assert_same_results(model, X, run(proto, X))


@pytest.mark.slow
def test_thousands_of_features(dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8)) @ rng.standard_normal((8, 4096))
    X[::7] = rng.standard_normal(X[::7].shape)
    X = X.astype(dtype)
    model = DPCP(random_state=1000).fit(X)
    assert model.n_features_in_ - model.codimension_ <= 20
    proto = to_onnx(model)
    assert proto.ByteSize() < 2_000_000
    for run in (by_runtime, by_reference):
        assert_same_results(model, X, run(proto, X))


def test_exact_inliers_stay_inliers(dtype, run, seed):
    """The threshold is a few roundings then; the graph must not round worse."""
    data = make_subspace(300, 200, n_features=20, codimension=3, random_state=seed)
    X = data.X.astype(dtype)
    model = DPCP(random_state=seed + 1000).fit(X)
    np.testing.assert_array_equal(model.labels_, data.y)
    np.testing.assert_array_equal(run(to_onnx(model), X)["label"], data.y)


@QUIET
@pytest.mark.parametrize("affine", [False, True])
def test_no_normals_and_nothing_but_normals(affine, dtype, run, seed):
    X = np.random.default_rng(seed).standard_normal((100, 4)).astype(dtype)
    for codimension in (0, 4):
        model = DPCP(codimension, affine=affine, random_state=seed + 1000).fit(X)
        assert model.codimension_ == codimension
        new = rows(4, seed).astype(dtype)
        assert_same_results(model, new, run(to_onnx(model), new), 1 + np.linalg.norm(new, axis=1))


@pytest.mark.parametrize("normalize", [True, False])
def test_rows_whose_squares_over_or_underflow(normalize, dtype, run, seed):
    data = make_subspace(150, 100, n_features=6, codimension=2, noise=0.01, random_state=seed)
    model = DPCP(normalize=normalize, random_state=seed + 1000).fit(data.X.astype(dtype))
    far = {np.float32: 1e30, np.float64: 1e250}[dtype]
    for scale in (far, 1 / far):
        X = (data.X * scale).astype(dtype)
        found = run(to_onnx(model), X)
        assert np.all(np.isfinite(found["distance"]))
        assert_same_results(model, X, found)


def test_a_cloud_far_from_the_origin_keeps_its_digits(run, seed):
    data = make_subspace(200, 100, n_features=3, codimension=1, noise=0.01, random_state=seed)
    X = data.X + np.array([4.5e5, 5.4e6, 120.0])
    model = DPCP(affine=True, random_state=seed + 1000).fit(X)
    found = run(to_onnx(model), X)
    np.testing.assert_allclose(found["distance"], model.distance(X), atol=1e-8)
    np.testing.assert_array_equal(found["label"], model.labels_)


def test_any_number_of_rows_and_rows_that_are_not_finite(run):
    X = make_subspace(150, 100, n_features=6, codimension=2, random_state=0).X
    proto = to_onnx(DPCP(random_state=1000).fit(X))
    for n in (0, 1, 7):
        assert run(proto, X[:n])["label"].shape == (n,)
    bad = X[:3].copy()
    bad[0, 1], bad[1, 2], bad[2, 3] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        found = run(proto, bad)
    np.testing.assert_array_equal(found["label"], -1)
    assert np.all(np.isnan(found["distance"]))


def test_a_file_with_names_and_versions(tmp_path, seed):
    data = make_subspace(150, 100, n_features=3, codimension=1, random_state=seed)
    names = ["größe", 'quote"', "<b>"]
    model = DPCP(random_state=seed + 1000).fit(pd.DataFrame(data.X, columns=names))
    returned = to_onnx(model, tmp_path / "m.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]
    proto = onnx.load(tmp_path / "m.onnx")
    assert proto == returned
    onnx.checker.check_model(proto, full_check=True)
    metadata = {entry.key: entry.value for entry in proto.metadata_props}
    assert json.loads(metadata["feature_names"]) == names
    assert metadata["method"] == "DPCP"
    assert int(metadata["codimension"]) == 1
    assert float(metadata["threshold"]) == model.threshold_
    assert json.loads(metadata["affine"]) is False
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (label,) = session.run(["label"], {"X": data.X})
    np.testing.assert_array_equal(label, model.labels_)


def test_the_same_model_gives_the_same_bytes(seed):
    X = make_subspace(150, 100, n_features=6, codimension=2, random_state=seed).X
    model = DPCP(random_state=seed + 1000).fit(X)
    assert to_onnx(model).SerializeToString() == to_onnx(model).SerializeToString()


def test_what_cannot_be_exported(monkeypatch):
    X = make_subspace(60, 40, n_features=6, codimension=2, random_state=0).X
    model = DPCP(random_state=1000)
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(model)
    model.fit(X)
    with pytest.raises(InputError, match="expected float32 or float64"):
        to_onnx(model, dtype=np.float16)
    with pytest.raises(InputError, match="model is a ndarray"):
        to_onnx(X)
    monkeypatch.setattr(export, "MAX_WEIGHT_BYTES", 50)
    with pytest.raises(InputError, match="too many for one ONNX file"):
        to_onnx(model)


def test_without_onnx_the_extra_is_named():
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "from perpend.export import to_onnx\n"
        "from perpend.exceptions import MissingExtraError\n"
        "try:\n    to_onnx(None)\n"
        "except MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'perpend[onnx]'" in done.stdout
