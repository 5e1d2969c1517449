"""Rows of Dask arrays: the same sums, whoever computes them, and whatever happens to workers."""

import contextlib
import gc
import logging
import os
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from perpend import DPCP, open_rows
from perpend.exceptions import ClusterError, InputError
from perpend.kernels import (
    distances,
    gram,
    grouped_distances,
    l1_objective_and_gradient,
    weighted_gram,
)
from perpend.methods.dpcp import dpcp
from perpend.rows import as_rows
from perpend.rows import blocks as blocks_module
from perpend.rows.blocks import Block, View

dask = pytest.importorskip("dask", reason="dask is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
import dask.array as da  # noqa: E402

from perpend.rows import dask as module  # noqa: E402

N, D, K = 601, 6, 3
EDGES = np.geomspace(1e-3, 4.0, 32)


def data(seed=0, n=N, n_features=D):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features)) * rng.lognormal(size=(n, 1))
    X[: n // 2, :2] *= 0.01
    return X, np.linalg.qr(rng.standard_normal((n_features, K)))[0]


@pytest.fixture(scope="module")
def cluster():
    # Workers are forked from a process that has imported everything: they start at once.
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        distributed.utils.get_mp_context().set_forkserver_preload(
            ["distributed", "perpend.methods.dpcp"]
        )
        with distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster:
            yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(3)
        yield client


@pytest.fixture(params=["local", "cluster"])
def place(request):
    return request.getfixturevalue("client") if request.param == "cluster" else None


# -- the same as in memory -------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_everything_is_as_in_memory(place, normalize, weighted):
    X, V = data()
    X[5] = 0
    weight = np.random.default_rng(1).uniform(size=N) if weighted else None
    how = {"weight": weight, "normalize": normalize}
    ours, theirs = as_rows(da.from_array(X, chunks=(100, -1)), **how), as_rows(X, **how)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    assert ours.unit == theirs.unit
    np.testing.assert_array_equal(ours.norms, theirs.norms)
    assert ours.total_weight == pytest.approx(theirs.total_weight, rel=1e-14)
    assert ours.precision == theirs.precision
    kept = [rows.scan(grouped_distances, distances, V, EDGES, keep=True) for rows in (ours, theirs)]
    np.testing.assert_allclose(kept[0].product, kept[1].product, rtol=1e-12)
    for kernel, params, using in [
        (gram, (), False),
        (l1_objective_and_gradient, (V,), False),
        (weighted_gram, (np.linspace(1, 0, len(EDGES)), EDGES), True),
    ]:
        a, b = (
            rows.scan(kernel, *params, using=(one.kept,) if using else ())
            for rows, one in zip((ours, theirs), kept, strict=True)
        )
        for x, y in zip(a[:2], b[:2], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12) if y is not None else None
    for name in ("weights", "lengths"):
        values = [rows.gather(getattr(rows, name)) for rows in (ours, theirs)]
        np.testing.assert_array_equal(*values)
    np.testing.assert_allclose(
        ours.gather(kept[0].kept), theirs.gather(kept[1].kept), rtol=0, atol=1e-14
    )
    np.testing.assert_allclose(
        kept[0].kept.piece(slice(90, 310)), ours.gather(kept[0].kept)[90:310]
    )
    some = np.array([3, 99, 100, 450, 600])
    np.testing.assert_array_equal(ours.take(some), theirs.take(some))
    subset = [rows.subset(some).scan(gram).product for rows in (ours, theirs)]
    np.testing.assert_allclose(*subset, rtol=1e-13)
    turned = [rows.mapped(V).scan(gram).product for rows in (ours, theirs)]
    np.testing.assert_allclose(*turned, rtol=1e-12)


def test_blocks_of_any_size_and_unknown_sizes(place):
    X, _ = data()
    expected = as_rows(X).scan(gram).product
    blocks = da.from_array(X, chunks=((1, 0, 300, 300, 0), D))
    unknown = blocks[blocks[:, 0] > -np.inf]
    assert np.isnan(unknown.shape[0])
    for one in (blocks, unknown):
        rows = as_rows(one)
        assert rows.shape == X.shape
        np.testing.assert_allclose(rows.scan(gram).product, expected, rtol=1e-12)
    weight = np.arange(float(N))
    ours, theirs = as_rows(unknown, weight=weight), as_rows(X, weight=weight)
    np.testing.assert_array_equal(ours.gather(ours.weights), theirs.gather(theirs.weights))


def test_a_dataframe_is_read_in_its_partitions():
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, _ = data()
    table = dd.from_pandas(pd.DataFrame(X), npartitions=4)
    np.testing.assert_allclose(as_rows(table).scan(gram).product, as_rows(X).scan(gram).product)


def test_data_larger_than_the_budget_is_read_again_in_every_pass(monkeypatch):
    X, _ = data()
    monkeypatch.setattr(module, "MEMORY_BUDGET", 1000)
    read = []

    def load(block, block_info=None):
        read.append(block_info)
        return X[slice(*block_info[None]["array-location"][0])]

    lazy = da.zeros(X.shape, chunks=(200, -1)).map_blocks(load, dtype=float, meta=X[:0])
    rows = as_rows(lazy)
    n = len(read)
    np.testing.assert_allclose(rows.scan(gram).product, as_rows(X).scan(gram).product)
    assert len(read) == n + 4


def test_blocks_that_change_between_passes_are_noticed(monkeypatch):
    monkeypatch.setattr(module, "MEMORY_BUDGET", 1000)  # so that they are made in every pass
    X, passes = data(n=3000)[0], iter(range(10_000))

    def loaded(block):
        rng = np.random.default_rng(next(passes))
        return rng.permutation(block) if len(block) > 1000 else block

    rows = da.from_array(X, chunks=((1000, 0, 2000), -1)).map_blocks(loaded, meta=X[:0])
    with pytest.raises(InputError, match="row 0 of block 2 of X on are not those of an earlier"):
        DPCP(random_state=0).fit(rows)


# -- what is wrong ---------------------------------------------------------------------------------


def test_bad_arrays_are_refused_with_the_fix():
    X, _ = data()
    with pytest.raises(InputError, match=r"split along its columns .*X\.rechunk\(\{1: -1\}\)"):
        as_rows(da.from_array(X, chunks=(100, 3)))
    with pytest.raises(InputError, match="1 dimensions"):
        as_rows(da.from_array(X[0]))
    with pytest.raises(InputError, match="complex128"):
        as_rows(da.from_array(X.astype(complex)))


def test_nan_is_named_by_row_and_block(place):
    X, _ = data()
    X[450, 2] = X[520, 1] = np.nan
    with pytest.raises(
        InputError, match=r"2 entries in 2 rows .*row 450 = row 50 of block 4, column 2"
    ):
        as_rows(da.from_array(X, chunks=(100, -1)))


def test_a_block_of_another_width_is_named(place):
    X, _ = data()
    wrong = da.from_array(X, chunks=(100, -1)).map_blocks(
        lambda block, block_info=None: block[:, : D - (block_info[0]["chunk-location"][0] == 2)],
        dtype=float,
        meta=X[:0],
    )
    with pytest.raises(InputError, match=r"Block 2 of X has shape \(100, 5\)"):
        as_rows(wrong)


def test_a_loader_that_fails_says_why(place):
    def fail(block):
        raise FileNotFoundError("part-3 is missing")

    lazy = da.zeros((N, D), chunks=(100, -1)).map_blocks(fail, dtype=float, meta=np.zeros((0, 0)))
    with pytest.raises(FileNotFoundError, match="part-3 is missing"):
        as_rows(lazy)


def test_a_block_that_moves_leaves_its_caches_behind():
    X, _ = data()
    block = Block(np.asfortranarray(X))
    assert block.X.flags.c_contiguous
    again = pickle.loads(pickle.dumps(block))
    np.testing.assert_array_equal(again.X, X)


def test_two_tasks_on_one_block_prepare_it_once(monkeypatch):
    block, made, together = Block(data()[0]), [], threading.Barrier(2)

    def slowly(*args, prepared=blocks_module.prepared):
        made.append(args)
        time.sleep(0.05)
        return prepared(*args)

    def task():
        together.wait()
        return block.rows(View("a"))

    monkeypatch.setattr(blocks_module, "prepared", slowly)
    with ThreadPoolExecutor(2) as pool:
        one, other = (done.result() for done in [pool.submit(task), pool.submit(task)])
    assert one is other
    assert len(made) == 1


def test_rows_in_memory_and_in_files_are_spread_over_workers(tmp_path):
    X, _ = data()
    np.save(tmp_path / "rows.npy", X)
    for rows in (X, open_rows(tmp_path / "rows.npy")):
        lazy = module.spread(rows, 2)
        assert lazy.numblocks == (8, 1)
        np.testing.assert_array_equal(lazy, X)


# -- whatever happens to workers -------------------------------------------------------------------


def problem():
    from perpend.datasets import make_subspace

    X = make_subspace(1500, 1000, n_features=12, codimension=4, noise=0.02, random_state=0).X
    return da.from_array(X, chunks=(200, -1))


def solution(X):
    rows = as_rows(X)
    found = dpcp(rows, rng=np.random.default_rng(1))
    return found.normals, rows.gather(found.distances)


def all_given_up(client):
    """Dask's client hears of it in another thread."""
    end = time.monotonic() + 3
    while client.futures and time.monotonic() < end:
        time.sleep(0.01)
    return not client.futures


def test_blocks_are_given_up_with_the_rows(client):
    X, V = data()
    gc.disable()
    try:
        for weight in (None, np.ones(N)):
            rows = as_rows(da.from_array(X, chunks=(100, -1)), weight=weight)
            kept = rows.mapped(V).scan(distances, np.eye(K), keep=True).kept
            assert len(client.futures) >= 7
            del rows, kept
            assert all_given_up(client)
        model = DPCP(random_state=0, affine=True).fit(da.from_array(X, chunks=(100, -1)))
        assert all_given_up(client)
        assert model.labels_.shape == (N,)
    finally:
        gc.enable()


def pause(status, dask_worker):
    dask_worker.status = distributed.Status[status]


def pids(cluster, client):
    """Wait until three workers are there, also one that is started again; return their ids."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        nannies = cluster.workers.values()
        wanted = {nanny.worker_address: nanny.process and nanny.process.pid for nanny in nannies}
        with contextlib.suppress(OSError):  # one that was killed may still be listed
            if len(wanted) == 3 and client.run(os.getpid) == wanted:
                return list(wanted.values())
        time.sleep(0.1)
    pytest.fail("a worker was not started again")


def test_killed_workers_change_no_bit(cluster, client):
    X, rng = problem(), np.random.default_rng(0)
    start = time.perf_counter()
    expected = solution(X)
    took = time.perf_counter() - start
    for _ in range(5):
        victim, delay = rng.choice(pids(cluster, client)), rng.uniform(0.1, 1) * took
        timer = threading.Timer(delay, os.kill, (victim, signal.SIGKILL))
        timer.start()
        found = solution(X)
        timer.join()
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_a_paused_worker_and_one_that_joins_late(cluster, client):
    X = problem()
    expected = solution(X)
    rows = as_rows(X)
    address = next(iter(client.scheduler_info()["workers"]))
    client.run(pause, "paused", workers=[address])
    try:
        cluster.scale(4)
        found = dpcp(rows, rng=np.random.default_rng(1))
        np.testing.assert_array_equal(found.normals, expected[0])
    finally:
        client.run(pause, "running", workers=[address])
        cluster.scale(3)


def test_a_task_on_a_worker_that_pauses_is_done_elsewhere(client):
    X, _ = data()
    rows = as_rows(da.from_array(X, chunks=(100, -1)))
    expected = rows.scan(gram).product
    address = next(iter(client.scheduler_info()["workers"]))
    busy = client.submit(time.sleep, 2, workers=[address], pure=False)
    time.sleep(0.2)
    timer = threading.Timer(0.3, client.run, (pause, "paused"), {"workers": [address]})
    timer.start()
    try:
        np.testing.assert_array_equal(rows.scan(gram).product, expected)
    finally:
        timer.join()
        client.run(pause, "running", workers=[address])
    del busy


def test_a_restarted_cluster_makes_its_blocks_again(client):
    X, _ = data()
    rows = as_rows(da.from_array(X, chunks=(100, -1)), weight=np.arange(float(N)))
    expected = rows.scan(gram).product
    client.restart()
    np.testing.assert_array_equal(rows.scan(gram).product, expected)


def in_threads(n_workers):
    return distributed.LocalCluster(
        n_workers=n_workers, processes=False, dashboard_address=":0", silence_logs=logging.CRITICAL
    )


def test_without_workers_or_scheduler_there_is_a_clear_error():
    X, _ = data()
    with (
        dask.config.set({"perpend.patience": 1.0, "distributed.comm.timeouts.connect": "1s"}),
        in_threads(1) as cluster,
    ):
        client = distributed.Client(cluster)
        rows = as_rows(da.from_array(X, chunks=(100, -1)))
        expected = rows.scan(gram).product
        cluster.scale(0)
        with pytest.raises(ClusterError, match=r"No progress for 1 s: .* has 0 workers"):
            rows.scan(gram)
        cluster.scale(1)
        client.wait_for_workers(1, timeout=60)  # a busy machine takes longer than the patience
        np.testing.assert_array_equal(rows.scan(gram).product, expected)
        client.close()
        with pytest.raises(ClusterError, match=r"scheduler at .* is gone"):
            rows.scan(gram)


@pytest.mark.slow
def test_a_block_that_kills_every_worker_is_an_error(client):
    def deadly(block):
        os.kill(os.getpid(), signal.SIGKILL)

    X = da.zeros((10, 2), chunks=(10, 2)).map_blocks(deadly, dtype=float, meta=np.zeros((0, 0)))
    with pytest.raises(ClusterError, match="smaller blocks"):
        as_rows(X)


@pytest.mark.slow
def test_a_block_may_lose_more_workers_than_dask_allows(client, tmp_path):
    X, _ = data()
    deaths = tmp_path / "deaths"
    deaths.touch()

    def unlucky(block):
        if deaths.stat().st_size < 5:
            with deaths.open("a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    rows = as_rows(da.from_array(X, chunks=(N, D)).map_blocks(unlucky, dtype=float, meta=X[:0]))
    np.testing.assert_allclose(rows.scan(gram).product, as_rows(X).scan(gram).product)
    assert deaths.stat().st_size == 5
