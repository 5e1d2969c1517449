"""What is said before the work begins: how often rows are read, and whether the limit is enough."""

import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from perpend import DPCP, RSGM, as_rows, open_rows
from perpend._typing import Array
from perpend.datasets import make_subspace
from perpend.exceptions import InputError
from perpend.metrics import subspace_distance
from perpend.rows import plan
from perpend.rows.lazy import Picked
from perpend.rows.plan import PASSES_OF_OTHERS, Fit, search_bytes
from perpend.rows.source import NEW_SOURCE
from perpend.rows.sparse import SparseRows
from perpend.rows.stored import StoredRows
from perpend.structure import find_affine, sample_size

D, generator = 12, np.random.default_rng


class Reader:
    """Rows of an array, read as those of a file; single rows take a pass."""

    def __init__(self, X: Array) -> None:
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def read(self, start: int, stop: int) -> Array:
        return self.X[start:stop].copy()


class Unread(Reader):
    """Rows that nobody may read."""

    def __init__(self, *shape: int) -> None:
        super().__init__(np.broadcast_to(np.float32(1), shape))

    def read(self, start: int, stop: int) -> Array:
        raise AssertionError("read before the check")


def data(kind: str, n: int, seed: int) -> Array:
    if kind == "nothing":
        return np.random.default_rng(seed).standard_normal((n, D)).astype(np.float32)
    noise = 0.05 * (kind == "noisy")
    of = make_subspace(n // 2, n // 2, n_features=D, codimension=2, noise=noise, random_state=seed)
    return of.X.astype(np.float32)


@pytest.mark.parametrize("outliers", ["across", "both"])
@pytest.mark.parametrize("affine", [False, True, "auto"])
@pytest.mark.parametrize("kind", ["exact", "noisy"])
def test_a_sampled_fit_reads_no_more_than_was_said(kind, affine, outliers) -> None:
    rows = StoredRows(Reader(data(kind, 24_000, 3)), 2**20)
    model = DPCP(affine=affine, outliers=outliers, random_state=3).fit(rows)
    said = rows.plan(affine=affine, outliers=outliers)
    most = int(re.search(r"at most (\d+) times", said)[1])
    assert most == Fit(affine, outliers).passes
    assert rows.passes <= most + PASSES_OF_OTHERS * (len(model.structures_) - 1)
    assert ("Otherwise" in said) == (affine is not True)


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("kind", ["exact", "noisy", "nothing"])
def test_an_affine_fit_without_a_sample_reads_no_more_than_was_said(kind) -> None:
    rows = StoredRows(Reader(data(kind, 6000, 4)), 2**19)
    DPCP(affine=True, random_state=4).fit(rows)
    assert 2 < rows.passes <= int(re.search(r"at most (\d+) times", rows.plan(affine=True))[1])


@pytest.mark.parametrize("how", [{}, {"affine": "auto"}, {"sample_size": None}])
def test_what_is_not_bounded_is_not_said_to_be(how) -> None:
    n = 24_000 if "sample_size" in how else 9000
    rows = StoredRows(Reader(data("noisy", n, 5)), 2**19)
    said = rows.plan(**how)
    assert "once per iteration, as they are too few for a sample" in said
    assert "at most" not in said
    DPCP(**how, random_state=5).fit(rows)
    assert rows.passes > Fit().passes  # a bound for samples would be wrong
    assert Fit.of(DPCP(**how)).is_sampled(n, D) is False


@pytest.mark.parametrize("how", [{"refine": False}, {"init": np.eye(D)[:3]}])
def test_fits_that_draw_no_sample_are_known(how) -> None:
    assert not Fit.of(DPCP(**how)).is_sampled(10**6, D)
    assert Fit.of(DPCP()).is_sampled(10**6, D)
    assert not Fit.of(RSGM()).is_sampled(10**6, D)


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("kind", ["exact", "noisy", "nothing"])
def test_rows_that_fit_are_read_once(kind, affine, seed) -> None:
    X = data(kind, 6000, seed)
    rows = StoredRows(Reader(X), 2**20)
    assert len(rows.windows) > 1
    assert "are read once and held." in rows.plan()
    model, again = (DPCP(affine=affine, random_state=seed).fit(R) for R in (X, rows))
    assert rows.passes == 1
    assert np.array_equal(model.labels_, again.labels_)
    assert np.array_equal(again.predict(rows), again.labels_)
    assert rows.passes == 1
    assert StoredRows(Reader(X), 2**19).plan().count("held") == 0  # too many to be held


@pytest.mark.filterwarnings("ignore::perpend.exceptions.CodimensionWarning")
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("kind", ["noisy", pytest.param("nothing", marks=pytest.mark.slow)])
def test_a_sample_that_is_too_large_is_read_as_well(kind, normalize) -> None:
    seed = 7
    X = data(kind, 24_000, seed)
    rows, of = StoredRows(Reader(X), 2**18), []
    token = NEW_SOURCE.set(lambda source: of.append(source) or source)
    try:
        model = DPCP(normalize=normalize, random_state=seed).fit(rows)
    finally:
        NEW_SOURCE.reset(token)
    picked = of[0].subset(np.arange(0, 24_000, 4))
    assert isinstance(picked._X, Picked)  # 288 kB
    assert np.allclose(picked.take(np.arange(5)), of[0].take(np.arange(0, 20, 4)), rtol=1e-6)
    in_memory = DPCP(normalize=normalize, random_state=seed).fit(X)
    assert model.codimension_ == in_memory.codimension_
    assert np.array_equal(model.labels_, in_memory.labels_)
    assert subspace_distance(model.normals_, in_memory.normals_) < 1e-5


@pytest.mark.parametrize("affine", [False, True, "auto"])
def test_a_limit_that_is_too_small_is_refused_before_anything_is_read(affine) -> None:
    with pytest.raises(InputError, match=r"1200 columns .*=256MiB is too small") as said:
        DPCP(affine=affine).fit(open_rows(Unread(10**6, 1200), memory_limit="256MiB"))
    least = re.search(r"Raise it to (\d+MiB)", str(said.value))[1]
    with pytest.raises(AssertionError, match="read before the check"):
        DPCP(affine=affine).fit(open_rows(Unread(10**6, 1200), memory_limit=least))
    with pytest.raises(AssertionError, match="read before the check"):
        DPCP(affine=affine).fit(open_rows(Unread(10**6, 100), memory_limit="4MiB"))


def test_a_search_for_what_is_not_sure_says_what_it_needs(monkeypatch) -> None:
    monkeypatch.setattr(plan, "BESIDE", plan.BUFFERS + 2**20)
    rows, match = StoredRows(Reader(data("nothing", 4500, 6)), 2**17), "needed in memory at once"
    with pytest.raises(InputError, match="4500 rows are " + match + r".*Raise it to \d+MiB"):
        find_affine(rows, None, codimension="auto", sample=1000, n_jobs=1, rng=generator(6))
    seen = as_rows(rows)
    for source in (seen, seen.subset(np.arange(4400)), seen.subset(np.arange(0, 4500, 2))):
        assert source.take(np.arange(1000)).shape == (1000, D)
    for source in (seen, seen.subset(np.arange(4400))):
        with pytest.raises(InputError, match=match):
            source.take(np.arange(4300))


def test_sparse_rows_say_that_a_sample_is_too_large() -> None:
    few = SparseRows(sparse.csr_array(data("nothing", 90_000, 8)), 2**17)
    with pytest.raises(InputError, match=r"needed in memory at once .*fewer rows, as nothing is"):
        as_rows(few).subset(np.arange(0, 90_000, 2))


@pytest.mark.parametrize("n_features", [2, 16, 17, 100, 400, 3000])
def test_as_many_rows_are_searched_as_was_said(n_features) -> None:
    rows, of_column = plan.SEARCHED
    assert sample_size(n_features) <= max(rows, of_column * n_features)


@pytest.mark.slow
@pytest.mark.parametrize("affine", [False, True])
def test_a_search_takes_no_more_memory_than_was_said(tmp_path, affine) -> None:
    n, width, limit = 30_000, 300, 2**24
    how = {"n_features": width, "codimension": 4, "noise": 0.02, "offset": float(affine)}
    X = make_subspace(n // 2, n // 2, random_state=0, **how).X.astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    del X
    rows = open_rows(tmp_path / "rows.npy", memory_limit=limit)
    tracemalloc.start()
    model = DPCP(affine=affine, random_state=0).fit(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.codimension_ == 4
    said = search_bytes(n, width, 4, Fit(affine))
    assert said / 3 < peak < said + limit
