"""Fits of Dask arrays and dataframes: the results of arrays; what is told of rows is lazy."""

import logging

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from perpend import DPCP, PCP, RSGM, RANSACPlus, RobustStandardizer
from perpend.datasets import make_subspace
from perpend.estimator import METHODS
from perpend.exceptions import CheckpointError, ClusterError, InputError
from perpend.metrics import subspace_distance
from perpend.rows import journal, quartiles

dask = pytest.importorskip("dask", reason="dask is not installed")
import dask.array as da  # noqa: E402

from perpend.rows.blocks import RemoteRows  # noqa: E402
from perpend.rows.dask import ClusterBlocks  # noqa: E402


def data(seed, n=2000, **how):
    how = {"n_features": 10, "codimension": 3, "noise": 0.02, "random_state": seed} | how
    return make_subspace(n, 3 * n // 4, **how).X


def in_blocks(X, size=1000):
    return da.from_array(X, chunks=(size, -1))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"affine": True},
        {"affine": "auto", "outliers": "both"},
        {"normalize": False, "contamination": 0.3},
        {"affine": True, "codimension": 3},  # with fewer, exact normals leave a choice
    ],
    ids=str,
)
def test_the_result_is_that_of_an_array(how, weighted, seed):
    X = data(seed, offset=float(bool(how.get("affine"))), noise=0.03 * (seed % 2))
    weight = np.random.default_rng(seed).uniform(0, 2, len(X)) if weighted else None
    model = DPCP(random_state=seed, **how).fit(X, sample_weight=weight)
    lazy = in_blocks(X)
    given = weight if seed % 2 or weight is None else da.from_array(weight, chunks=700)
    other = DPCP(random_state=seed, **how).fit(lazy, sample_weight=given)
    assert model.codimension_ == other.codimension_
    assert subspace_distance(model.normals_, other.normals_) <= 1e-8
    np.testing.assert_array_equal(model.labels_, other.labels_)
    assert other.confidence_ == pytest.approx(model.confidence_)
    assert other.score(lazy) == pytest.approx(model.score(X))


@pytest.mark.parametrize("affine", [False, True])
def test_an_interrupted_fit_goes_on(tmp_path, affine, seed):
    X, path = in_blocks(data(seed, n=12_000, offset=float(affine))), tmp_path / "fit.checkpoint"

    def interrupt(progress):
        if progress.stage == "polish":
            raise KeyboardInterrupt

    undisturbed = DPCP(affine=affine, random_state=seed).fit(X)
    with pytest.raises(KeyboardInterrupt):
        DPCP(affine=affine, random_state=seed, callback=interrupt).fit(X, checkpoint=path)
    assert path.stat().st_size > 0
    resumed = DPCP(affine=affine, random_state=seed).fit(X, checkpoint=path)
    np.testing.assert_array_equal(resumed.normals_, undisturbed.normals_)
    np.testing.assert_array_equal(resumed.labels_, undisturbed.labels_)


def test_the_checkpoint_of_other_blocks_says_so(tmp_path):
    X, path = data(0), tmp_path / "fit.checkpoint"
    sizes = "blocks of 1000, 1000, 1000, 500 rows there and"
    DPCP(random_state=0).fit(in_blocks(X), checkpoint=path)
    smaller = rf"{sizes} of 500, 500, 500, 500, 500, ... rows, sha256 \w+ here"
    none = rf"rows in blocks of Dask, .* there and in memory, .* here; {sizes} None here"
    for rows, differs in ((in_blocks(X, 500), smaller), (X, none)):
        with pytest.raises(CheckpointError, match=differs):
            DPCP(random_state=0).fit(rows, checkpoint=path)


def test_a_fit_whose_workers_are_gone_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    monkeypatch.setattr(journal, "BYTES_PER_SECOND", np.inf)
    X, path, how = data(0, n=4000), tmp_path / "fit.checkpoint", {"codimension": 3}
    undisturbed = RSGM(random_state=0, **how).fit(in_blocks(X, 2000))
    n_passes = []
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    ) as cluster, distributed.Client(cluster):  # fmt: skip

        def stop(progress):
            if progress.step == 8:
                cluster.scale(0)

        with dask.config.set({"perpend.patience": 1.0}), pytest.raises(ClusterError):
            RSGM(random_state=0, callback=stop, **how).fit(in_blocks(X, 2000), checkpoint=path)
        cluster.scale(1)
        run = ClusterBlocks.run

        def counted(*args, **more):
            n_passes.append(1)
            return run(*args, **more)

        monkeypatch.setattr(ClusterBlocks, "run", counted)
        again = RSGM(random_state=0, **how).fit(in_blocks(X, 2000))
        once = len(n_passes)
        resumed = RSGM(random_state=0, **how).fit(in_blocks(X, 2000), checkpoint=path)
    assert len(n_passes) - once <= once - 5
    for model in (again, resumed):
        np.testing.assert_array_equal(model.normals_, undisturbed.normals_)
        np.testing.assert_array_equal(model.labels_, undisturbed.labels_)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_works(name):
    X = data(1, n=300)
    takes = "codimension" in METHODS[name]().get_params()
    how = {"random_state": 0} | ({"codimension": 3} if takes else {})
    model, other = (METHODS[name](**how).fit(one) for one in (X, in_blocks(X, 200)))
    assert subspace_distance(model.normals_, other.normals_) <= 1e-8
    np.testing.assert_array_equal(model.labels_, other.labels_)


def test_results_for_rows_are_lazy(seed):
    X = data(seed)
    lazy = in_blocks(X)
    model = DPCP(random_state=seed).fit(lazy)
    assert isinstance(model.labels_, np.ndarray)
    for name in (
        "predict", "distance", "score_samples", "decision_function", "outlier_probability",
        "transform", "explain",
    ):  # fmt: skip
        found, expected = getattr(model, name)(lazy), getattr(model, name)(X)
        assert isinstance(found, da.Array)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.chunks[0] == lazy.chunks[0]
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.predict(lazy, threshold=0.1), model.predict(X, 0.1))
    back = model.inverse_transform(model.transform(lazy))
    np.testing.assert_allclose(back, model.inverse_transform(model.transform(X)), atol=1e-12)
    some = lazy[lazy[:, 0] > 0.05]  # of unknown size
    np.testing.assert_array_equal(model.predict(some), model.predict(X[X[:, 0] > 0.05]))
    with pytest.raises(ValueError, match="10 features"):
        model.distance(lazy[:, :4])
    of = np.arange(len(X)) % 7  # in several blocks
    found = model.predict(lazy, groups=of)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, model.predict(X, groups=of))


def test_a_dataframe_has_names():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    names = list("abcdefghij")
    table = pd.DataFrame(data(0), columns=names)
    lazy = dd.from_pandas(table, npartitions=3)
    model, other = (DPCP(random_state=0).fit(one) for one in (table, lazy))
    assert list(other.feature_names_in_) == names
    np.testing.assert_array_equal(other.labels_, model.labels_)
    np.testing.assert_array_equal(other.predict(lazy).compute(), model.labels_)
    with pytest.raises(ValueError, match="feature names"):
        other.predict(lazy[names[::-1]])


def test_a_dataframe_inside_narwhals_is_taken_out_of_it():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    nw = pytest.importorskip("narwhals")
    X = nw.from_native(dd.from_pandas(pd.DataFrame(data(0)), npartitions=2))
    with pytest.raises(InputError, match=r"Pass X.collect\(\) or, .* X.to_native\(\)\.$"):
        DPCP().fit(X)
    assert DPCP(random_state=0).fit(X.to_native()).codimension_ == 3


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_the_standardizer_is_lazy_and_brings_no_rows_here(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((40_000, 5)) * [1, 1e3, 1e-3, 5, 7] * 100 + 3).astype(kind)
    if kind is np.float64:
        X[rng.random(X.shape) < 0.1] = np.nan
    monkeypatch.setattr(quartiles, "SAMPLE", 1000)
    brought = []
    read = RemoteRows._pick
    monkeypatch.setattr(RemoteRows, "_pick", lambda s, i: brought.append(len(i)) or read(s, i))
    blocks, twin = in_blocks(X), RobustStandardizer().fit(X)
    model = RobustStandardizer().fit(blocks)
    assert sum(brought) <= 1000
    np.testing.assert_allclose(model.center_, twin.center_, rtol=1e-12)
    np.testing.assert_allclose(model.scale_, twin.scale_, rtol=1e-9)
    Z = model.transform(blocks)
    assert isinstance(Z, da.Array)
    assert (Z.chunks, Z.dtype) == (blocks.chunks, twin.transform(X).dtype)
    np.testing.assert_allclose(Z.compute(), twin.transform(X), rtol=1e-6)
    back = model.inverse_transform(Z)
    assert isinstance(back, da.Array)
    np.testing.assert_allclose(back.compute(), X, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="3 features"):
        model.transform(blocks[:, :3])


def test_a_pipeline_of_blocks_ends_as_that_of_an_array():
    X = data(0, offset=1.0, noise=0.05) * np.geomspace(1, 1e3, 10)
    steps = RobustStandardizer(), DPCP(affine=True, random_state=0)
    model, twin = (make_pipeline(*map(clone, steps)).fit(rows) for rows in (in_blocks(X), X))
    assert np.array_equal(model[-1].labels_, twin[-1].labels_)
    assert np.array_equal(model.predict(in_blocks(X)).compute(), twin.predict(X))


def test_the_standardizer_knows_the_names_of_a_dataframe():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(data(0), columns=list("abcdefghij"))
    model = RobustStandardizer().fit(dd.from_pandas(frame, npartitions=3))
    assert list(model.feature_names_in_) == list("abcdefghij")
    Z = model.transform(dd.from_pandas(frame, npartitions=3))
    np.testing.assert_allclose(Z.compute(), RobustStandardizer().fit_transform(frame), rtol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(dd.from_pandas(frame.rename(columns={"a": "z"}), npartitions=3))


def test_what_is_not_finite_is_named_by_row_and_block():
    X = data(0)
    X[2100, 4] = np.nan
    with pytest.raises(InputError, match="row 2100 = row 100 of block 2, column 4"):
        DPCP().fit(in_blocks(X))
    model = DPCP(random_state=0).fit(data(0))
    for rows, start in ((in_blocks(X), ", which begins at row 2000"), (_of_unknown_size(X), "")):
        text = f"In block 2 of X{start}: .*first: row 100, column 4"
        with pytest.raises(InputError, match=text):
            model.predict(rows).compute()


def _of_unknown_size(X):
    lazy = in_blocks(X)
    return lazy[lazy[:, 0] < np.inf]


def test_what_needs_all_rows_at_once_says_so():
    X = in_blocks(data(0, n=8000))
    with dask.config.set({"perpend.memory-limit": 300_000}):
        with pytest.raises(InputError, match=r"needed in memory at once .*perpend\.memory-limit"):
            RANSACPlus().fit(X)
        assert DPCP(random_state=0, sample_size=500).fit(X).codimension_ == 3
    for model in (PCP(), DPCP(missing="mask")):
        with pytest.raises(InputError, match=r"needs all rows .*Pass X\.compute\(\)"):
            model.fit(X)
