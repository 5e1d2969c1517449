"""Rows that are read in windows, sparse or computed: the same result as that of an array."""

import os
import pickle
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import sparse

from perpend import DPCP, FMS, PCP, RSGM, RANSACPlus, as_rows, kernels, open_rows
from perpend._typing import Array
from perpend.datasets import make_subspace
from perpend.exceptions import InputError, TooLargeError
from perpend.kernels import gram, l1_objective_and_gradient
from perpend.metrics import subspace_distance
from perpend.rows import ArrayRows, plan, threads
from perpend.rows.centred import lift
from perpend.rows.lazy import Computed
from perpend.rows.plan import PASSES_OF_OTHERS, Fit
from perpend.rows.source import NEW_SOURCE
from perpend.rows.stored import GivenBlocks, StoredRows
from perpend.rows.unchanged import Unchanged

LIMIT = 2**22


@pytest.fixture(autouse=True)
def read_again(monkeypatch) -> None:
    """Rows of a few windows are read again in every pass, as those of many are."""
    monkeypatch.setattr(plan, "HELD", 0)


def data(seed: int, **how: object) -> Array:
    return make_subspace(12_000, 12_000, n_features=12, codimension=3, random_state=seed, **how).X


def stored(X: Array, n_blocks: int = 7) -> StoredRows:
    return open_rows(lambda: iter(np.array_split(X, n_blocks)), memory_limit=LIMIT)


def same(a: DPCP, b: DPCP) -> None:
    assert a.codimension_ == b.codimension_
    exact = a.normals_.dtype == np.float64
    assert subspace_distance(a.normals_, b.normals_) <= (1e-8 if exact else 1e-5)
    assert np.array_equal(a.labels_, b.labels_)
    assert a.confidence_ == pytest.approx(b.confidence_)


@pytest.mark.parametrize("affine", [False, True, "auto"])
@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_result_wherever_the_rows_are(tmp_path, affine, noise, dtype, seed) -> None:
    X = data(seed, noise=noise, offset=float(affine is True)).astype(dtype)
    np.save(tmp_path / "rows.npy", X)
    of_file = open_rows(tmp_path / "rows.npy", memory_limit=LIMIT)
    model = DPCP(affine=affine, random_state=seed).fit(X)
    n_others = len(model.structures_) - 1
    most = Fit(affine).passes
    assert f"at most {most} times" in of_file.plan(affine=affine)
    most += PASSES_OF_OTHERS * n_others
    for rows in (of_file, stored(X), sparse.csr_array(X)):
        other = DPCP(affine=affine, random_state=seed).fit(rows)
        same(model, other)
        assert getattr(rows, "passes", 0) <= most
        np.testing.assert_allclose(other.distance(rows), model.distance(X), atol=1e-6)
        assert np.array_equal(other.predict(rows), model.labels_)
        p, own = other.outlier_probability(rows), model.outlier_probability(X)
        np.testing.assert_allclose(p, own, atol=1e-8 if dtype == np.float64 else 1e-3)
        assert other.transform(rows).dtype == dtype
    assert len(of_file.windows) > 1


@pytest.mark.parametrize("method", [RSGM, FMS])
def test_every_method_that_scans_rows_works(method) -> None:
    X = data(0)
    model = method(codimension=3, random_state=0).fit(X)
    other = method(codimension=3, random_state=0).fit(stored(X))
    assert subspace_distance(model.normals_, other.normals_) <= 1e-8


def test_weights_and_both_kinds_of_outliers(seed) -> None:
    X = data(seed, noise=0.03)
    weight = np.random.default_rng(seed).uniform(0, 2, len(X))
    for how in ({"outliers": "both"}, {"contamination": 0.4}, {"normalize": False}):
        model = DPCP(random_state=seed, **how).fit(X, sample_weight=weight)
        same(model, DPCP(random_state=seed, **how).fit(stored(X), sample_weight=weight))


def test_sums_are_those_of_the_array(seed) -> None:
    X, B = data(seed), np.random.default_rng(seed).standard_normal((12, 4))
    own, other = as_rows(X), as_rows(stored(X))
    for kernel, *params in ((gram,), (l1_objective_and_gradient, B)):
        a, b = own.scan(kernel, *params), other.scan(kernel, *params)
        np.testing.assert_allclose(b.product, a.product, rtol=1e-12, atol=1e-9)
    assert np.array_equal(own.take(np.arange(5, 9000, 7)), other.take(np.arange(5, 9000, 7)))


@pytest.fixture
def four_processors(monkeypatch) -> Iterator[None]:
    monkeypatch.setattr(threads, "n_processors", lambda: 4)
    threads._pool.cache_clear()
    yield
    threads._pool().shutdown()
    threads._pool.cache_clear()


def reader_of_turns(X: Array) -> tuple[StoredRows, list[int]]:
    """Return rows, and the list of the windows that are read."""
    reads = list[int]()

    class Noting(_Twice):
        def read(self, start: int, stop: int) -> Array:
            reads.append(start)
            time.sleep(0.001)  # others go on meanwhile
            return super().read(start, stop)

    return open_rows(Noting(X), LIMIT), reads


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("as_affine", [False, True])
@pytest.mark.usefixtures("four_processors", "one_thread")
def test_threads_change_no_bit_and_read_each_window_once(normalize, as_affine, seed) -> None:
    X, V = data(seed), np.linalg.qr(np.random.default_rng(seed).standard_normal((12, 3)))[0]
    edges, table = np.geomspace(1e-3, 10, 50), np.linspace(1, 0, 50)

    def scans(rows: Array, n_jobs: int, note: list[int]) -> tuple[list[Array], list[int]]:
        Z = rows
        if as_affine:
            view = np.full(12, 0.1), 0.7
            Z = rows.lifted(*view) if isinstance(rows, StoredRows) else lift(rows, *view)
        how = {"normalize": normalize, "block_rows": 500, "n_jobs": n_jobs, "memory_budget": 1000}
        source = as_rows(Z, **how)  # without room for kept values: they are computed again
        V1 = np.pad(V, ((0, int(as_affine)), (0, 0)))
        sums, counts = [], []
        kept = source.scan(kernels.distances, V1, keep=True).kept
        for scan, using in (
            ((kernels.gram,), ()),
            ((kernels.distance_weighted_gram, kernels.distances, V1, table, edges), ()),
            ((_weighted,), (kept,)),
        ):
            note.clear()
            sums.append(source.scan(*scan, using=using).product)
            counts.append(sorted(note))
        return sums, counts

    expected, _ = scans(X, 1, [])
    for n_jobs in (1, 2, 4):
        rows, reads = reader_of_turns(X)
        found, counts = scans(rows, n_jobs, reads)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        starts = [w.start for w in rows.windows]
        assert len(starts) > 3
        assert counts == [starts] * 3


def _weighted(rows: Array, kept: Array) -> kernels.Contribution:
    return kernels.Contribution(left=rows, right=rows * kept[:, None])


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("n_jobs", [2, 4])
@pytest.mark.usefixtures("four_processors")
def test_threads_read_no_more_than_one(affine, n_jobs, monkeypatch) -> None:
    monkeypatch.setattr(ArrayRows, "_blocks_in_sum", 1)  # groups for every thread
    X = data(0, offset=float(affine), noise=0.05)
    passes, models = [], []
    for k in (1, n_jobs):
        rows, _ = reader_of_turns(X)
        models.append(DPCP(affine=affine, random_state=0, n_jobs=k).fit(rows))
        passes.append(rows.passes)
    assert passes[1] == passes[0] <= Fit(affine).passes
    assert np.array_equal(models[0].labels_, models[1].labels_)
    assert np.array_equal(models[0].normals_, models[1].normals_)


def test_two_sources_read_in_turns_are_those_alone(tmp_path, seed) -> None:
    X, Y = data(seed), data(seed + 1)[:, :9]
    alone = [RSGM(codimension=3, random_state=seed).fit(rows) for rows in (X, Y)]
    other, inside = stored(Y), []

    def fit_other(_: object) -> None:
        if len(inside) < 2:  # in the middle of the first fit, which has a journal of its own
            model = RSGM(codimension=3, random_state=seed)
            inside.append(model.fit(other, checkpoint=tmp_path / f"inside{len(inside)}"))

    rows, outside = stored(X), RSGM(codimension=3, random_state=seed, callback=fit_other)
    outside.fit(rows, checkpoint=tmp_path / "outside")
    same(alone[0], outside)
    assert len(inside) == 2
    for model in inside:
        same(alone[1], model)
    before = rows.passes
    again = RSGM(codimension=3, random_state=seed).fit(rows, checkpoint=tmp_path / "outside")
    assert np.array_equal(again.normals_, outside.normals_)
    assert rows.passes < 1.5 * before  # nothing of the others is in its journal
    assert NEW_SOURCE.get() is None


def test_slices_indices_and_columns_are_those_of_the_array(seed) -> None:
    rng, X = np.random.default_rng(seed), data(seed)
    rows = stored(X)
    keys = [slice(None), slice(3, 20_000, 7), slice(-5, None), rng.permutation(24_000)[:50], 23_999]
    keys += [np.array([True, False] * 12_000), (slice(5, 9), 0), (slice(5, 9), [1, 3])]
    keys += [-1, [-1, 5], np.array([3, -24_000]), np.array([7, 2], np.uint8), [], slice(9, 5)]
    keys += [(slice(5, 9), np.array([1, 3])), ([2, 1, -1], [3, 0, 1]), (slice(0, 9, 2), [1, 3])]
    keys += [(7, np.array([1, 3])), ([4, 3], 2), (slice(5, 9), slice(-2, None))]
    keys += [slice(24_000, None)]
    for key in keys:
        assert np.array_equal(rows[key], X[key])
        assert np.shape(rows[key]) == X[key].shape
    assert np.array_equal(pickle.loads(pickle.dumps(open_rows(_Twice(X), LIMIT)))[7:9], X[7:9])


def test_a_reader_has_one_caller_at_a_time() -> None:
    X, reading = data(0), threading.Lock()

    class Picking(_Twice):
        def read(self, start: int, stop: int) -> Array:
            with reading:
                time.sleep(0.05)  # the one ahead is under way when rows are picked
                return super().read(start, stop)

        def pick(self, indices: Array) -> Array:
            assert not reading.locked()
            return self.X[indices]

    rows = open_rows(Picking(X), LIMIT)
    for window in rows.windows[:3]:
        assert np.array_equal(rows[window], X[window])
        assert np.array_equal(rows[[5, 20_000]], X[[5, 20_000]])


def test_rows_that_are_not_there_are_an_error() -> None:
    rows = stored(data(0))
    for key in (24_000, -24_001, 10**6, [5, 24_000], np.array([-24_001, 0])):
        with pytest.raises(IndexError, match=r"no row -?[0-9]+ in .*, only rows 0 to 23999"):
            rows[key]
    for key in (1.5, [0.5], [True, False], np.zeros((2, 2), int), "a", None, ...):
        with pytest.raises(IndexError, match="expected a slice, integers"):
            rows[key]


def test_nobody_can_change_what_is_read_next() -> None:
    X = data(0)
    rows = open_rows(_Twice(X), LIMIT)
    first = rows[0:5]
    with pytest.raises(ValueError, match="read-only"):
        first *= 0
    assert np.array_equal(rows[0:5], X[0:5])
    assert X.flags.writeable  # the reader's own array is as it was


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_reads_by_itself(tmp_path) -> None:
    script = """
import os, sys, threading
import numpy as np
from perpend import open_rows

X = np.arange(600_000.0).reshape(-1, 6)
np.save(sys.argv[1], X)
read, go_on = threading.Event(), threading.Event()

class Slow:
    shape, dtype = X.shape, X.dtype
    def read(self, start, stop):
        if start and os.getpid() == parent:  # the one ahead, under way while we fork
            read.set()
            go_on.wait(60)
        return X[start:stop]

parent = os.getpid()
readers = Slow(), lambda: iter(np.array_split(X, 50)), sys.argv[1]
all_rows = [open_rows(one, memory_limit="4MiB") for one in readers]
for rows in all_rows:
    assert len(rows.windows) > 5
    assert (rows[:10] == X[:10]).all()
assert read.wait(60)
child = os.fork()
if child == 0:
    os._exit(0 if all((rows[w] == X[w]).all() for rows in all_rows for w in rows.windows) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
go_on.set()
assert all((rows[w] == X[w]).all() for rows in all_rows for w in rows.windows)
"""
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "rows.npy")]
    subprocess.run(command, check=True, timeout=60)


def test_faint_rows_keep_their_direction() -> None:
    X = data(0)[:3000]
    X[5] *= 1e-310
    same(DPCP(random_state=0).fit(X), DPCP(random_state=0).fit(stored(X)))


def test_computed_rows_are_made_when_they_are_read() -> None:
    X = data(0)
    twice = Computed(stored(X), lambda A, w: A * w[:, None], n_features=12, beside=(X[:, 0],))
    assert np.array_equal(twice[100:9000], X[100:9000] * X[100:9000, :1])
    assert np.array_equal(twice[[3, 20_000]], X[[3, 20_000]] * X[[3, 20_000], :1])


class _Twice:
    """A reader of two blocks."""

    dtype = np.dtype(float)

    def __init__(self, X: Array) -> None:
        self.X, self.shape = X, X.shape

    def read(self, start: int, stop: int) -> Array:
        return self.X[start:stop]


def test_what_is_not_finite_is_named_by_its_row(tmp_path) -> None:
    X = data(0)
    X[20_001, 4] = np.nan
    with pytest.raises(InputError, match="row 20001 = row 2857 of block 5, column 4"):
        DPCP().fit(stored(X))
    np.save(tmp_path / "bad.npy", X)
    with pytest.raises(InputError, match=r"row 20001 of .*bad.npy, column 4") as error:
        DPCP().fit(open_rows(tmp_path / "bad.npy", memory_limit=LIMIT))
    assert "mask" not in str(error.value)  # which needs an array


def test_bad_blocks_are_named() -> None:
    X = data(0)
    for blocks, text in (
        ([X[:10], X[10:20, :5]], "block 1 has 5 columns"),
        ([X[0]], "block 0 has the shape"),
        ([], "no rows"),
        ([X.astype(str)], "block 0 has entries of type"),
        (iter([X]), "only once"),
    ):
        with pytest.raises(InputError, match=text):
            open_rows(blocks)

    lengths = iter([4, 4, 2])  # counted, read, and cut short

    def shrinking() -> Iterator[Array]:
        return iter([X[:1000]] * next(lengths))

    reader = GivenBlocks(shrinking)
    reader.read(0, 4000)
    with pytest.raises(InputError, match="blocks: ends after row 2000, but rows up to 4000"):
        reader.read(0, 4000)


@pytest.mark.parametrize("source", [5, None, lambda: 5])
def test_a_source_that_is_none_is_refused_with_the_fix(source) -> None:
    with pytest.raises(InputError, match=r"expected a path, an iterable of blocks .* function"):
        open_rows(source)


def test_an_array_is_no_source_of_blocks() -> None:
    pd, X = pytest.importorskip("pandas"), data(0)[:50]
    for source in (X, pd.DataFrame(X), sparse.csr_array(X)):
        with pytest.raises(InputError, match=r"Pass it to fit as it is; open_rows\(\[X\]\)"):
            open_rows(source)
    with pytest.raises(InputError, match=r"If it is a row of X, pass \[X\]"):
        open_rows(lambda: X)
    assert np.array_equal(open_rows([X])[:], X)


def test_the_type_of_blocks_is_that_of_all() -> None:
    X = data(0)
    X[20] *= 1e200
    rows = open_rows([X[:10].astype(np.float32), X[10:30]])
    assert rows.dtype == np.float64
    assert np.array_equal(rows[10:], X[10:30])
    assert open_rows([X[:10].astype(np.float32), X[10:15].astype(np.float16)]).dtype == np.float32

    types = iter([np.float32, np.float64])
    rows = open_rows(lambda: iter([X[:10].astype(next(types))]))
    with pytest.raises(InputError, match="block 0 has entries of type float64, and all had"):
        rows[:]


@pytest.mark.parametrize("second", [[2000, 2500], [2000, 2000, 1], [2000, 2000, 0, 5]])
def test_rows_that_come_later_are_not_left_out(second) -> None:
    X = data(0)
    sizes = iter([[2000, 2000], second, second])
    rows = open_rows(lambda: iter([X[:n] for n in next(sizes)]))
    for _ in range(2):
        with pytest.raises(InputError, match="more rows than the 4000 that were counted"):
            rows[:4000]


def test_blocks_may_be_empty_and_read_again() -> None:
    X = data(0)
    rows = open_rows([X[:0], X[:4000], X[:0], X[4000:5000], X[:0]])
    for _ in range(2):
        assert np.array_equal(rows[:], X[:5000])
        assert np.array_equal(rows[4990:], X[4990:5000])


def test_a_reader_that_gives_fewer_rows_is_named() -> None:
    reader = _Twice(data(0))
    rows = open_rows(reader, LIMIT)
    reader.X = reader.X[:5000]
    with pytest.raises(InputError, match="ends after row 5000, but rows up to 5461 of 24000"):
        rows[:5001]
    reader.X = reader.X[:, :5]
    with pytest.raises(InputError, match=r"have the shape \(5000, 5\); expected"):
        rows[:1]


def shuffled(X: Array, n_pass: int) -> Array:
    return np.random.default_rng(n_pass).permutation(X)


def swapped_within_a_window(X: Array, n_pass: int) -> Array:
    return X if n_pass < 3 else X[[*range(20_000), 20_001, 20_000, *range(20_002, len(X))]]


def with_a_gap(X: Array, n_pass: int) -> Array:
    Y = X.copy()
    Y[20_001, 4] = np.nan if n_pass == 3 else Y[20_001, 4]
    return Y


def drawn_anew(X: Array, n_pass: int) -> Array:
    return X if n_pass < 3 else data(n_pass)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize(
    ("change", "where"),
    [
        (shuffled, "row 0 = row 0 of block 0"),
        (swapped_within_a_window, r"row 19\d+ = row \d+ of block 5"),
        (with_a_gap, r"row 19\d+ = row \d+ of block 5"),
        (drawn_anew, "row 0 = row 0 of block 0"),
    ],
)
def test_rows_that_change_between_passes_are_noticed(change, where, offset, dtype) -> None:
    X, passes = data(0), iter(range(1000))

    def blocks() -> Iterator[Array]:
        rows = change(X, next(passes)) + offset
        return iter(np.array_split(rows.astype(dtype), 7))

    rows = open_rows(blocks, memory_limit=LIMIT)
    assert len(rows.windows) > 1
    with pytest.raises(InputError, match=rf"rows from {where} on are not those of an earlier pass"):
        DPCP(affine=offset > 0, random_state=0).fit(rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_rounding_errors_are_no_change(offset, dtype) -> None:
    """As of rows that a GPU computes in each pass."""
    X, passes = data(0, noise=0.05) + offset, iter(range(1000))
    eps = float(np.finfo(dtype).eps)

    def computed() -> Iterator[Array]:
        Z = np.random.default_rng(next(passes)).standard_normal(X.shape)
        return iter(np.array_split((X * (1 + 4 * eps * Z)).astype(dtype), 7))

    model = DPCP(affine=offset > 0, random_state=0).fit(open_rows(computed, memory_limit=LIMIT))
    assert model.codimension_ == 3
    assert model.confidence_ > 0.95


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("D", [1, 12, 3000])
def test_of_every_row_and_entry_something_is_remembered(D, offset) -> None:
    X = np.random.default_rng(0).standard_normal((2000, D)) + offset
    for i in (0, 63, 64, 1234, 1999):
        seen, Y = Unchanged(), X.copy()
        assert seen.changed(0, X) is None
        Y[i] -= 2 * (X[i] - offset)
        assert seen.changed(0, X.copy()) is None
        where = seen.changed(0, Y)
        assert where is not None
        assert where.start <= i < where.stop <= len(X)
        Y = X.copy()
        Y[i, -1] = np.nan
        assert seen.changed(0, Y) is not None
        assert seen.changed(1, Y) is None  # another window
        assert seen.changed(1, Y) is None  # the NaN is where it was
        assert seen.changed(0, X + 1.0 + offset / 100) is not None  # all of them moved


def test_what_needs_all_rows_at_once_says_so() -> None:
    rows = stored(np.tile(data(0), (4, 1)))
    with pytest.raises(InputError, match="needed in memory at once"):
        np.asarray(rows)
    many = stored(np.tile(data(0), (24, 1)))  # more than the limit, and what may be beside it
    with pytest.raises(TooLargeError, match=r"needed in memory at once.* Raise it to"):
        RANSACPlus().fit(many)
    with pytest.raises(InputError, match=r"PCP needs all rows .*Pass X\[:\]"):
        PCP().fit(rows)
    for one, whole in ((rows, r"X\[:\]"), (sparse.csr_array(data(0)), r"X\.toarray\(\)")):
        with pytest.raises(InputError, match=rf'"mask"\) needs all rows .*{whole}.*"error"'):
            DPCP(missing="mask").fit(one)
    model = DPCP(random_state=0).fit(rows[:5000])
    with pytest.raises(InputError, match=r"in memory at once .*explain\(X\[labels == -1\]\)"):
        model.explain(rows)
    assert np.array_equal(model.explain(stored(rows[:500])), model.explain(rows[:500]))
    with pytest.raises(InputError, match="at least 4MiB"):
        open_rows([data(0)], memory_limit="1MiB")
    for limit in ("much", None, float("inf"), float("nan"), [1]):
        with pytest.raises(InputError, match=r"memory_limit=.* is not a size"):
            open_rows([data(0)], memory_limit=limit)


@pytest.mark.parametrize("affine", [False, True])
def test_memory_grows_by_a_few_values_for_each_row(tmp_path, affine) -> None:
    how = {"n_features": 60, "codimension": 4, "noise": 0.02, "offset": float(affine)}
    peaks, few, many = [], 50_000, 200_000  # both are searched in a sample
    for n in (few, few, many):  # the first time loads what a fit uses
        X = make_subspace(n // 2, n // 2, random_state=0, **how).X.astype(np.float32)
        np.save(tmp_path / f"{n}.npy", X)
        del X
        rows = open_rows(tmp_path / f"{n}.npy", memory_limit=2**23)
        tracemalloc.start()
        model = DPCP(affine=affine, random_state=0).fit(rows)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert model.codimension_ == 4
    assert peaks[2] - peaks[1] < 60 * (many - few)  # a row itself has 240 bytes
