"""Threads over rows: results in order, errors heard, no thread too many, forks survived."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from perpend.kernels import l1_objective_and_gradient
from perpend.kernels.compiled import l1
from perpend.rows import as_rows, threads
from perpend.rows.threads import in_order


@pytest.fixture
def processors(monkeypatch):
    """Pretend that there are four processors, with a pool of their own."""
    monkeypatch.setattr(threads, "n_processors", lambda: 4)
    threads._pool.cache_clear()
    yield
    threads._pool().shutdown()
    threads._pool.cache_clear()


def collect(work, n_items, n_jobs, uses_blas=False):
    taken = []
    in_order(work, taken.append, n_items, n_jobs=n_jobs, uses_blas=uses_blas)
    return taken


@pytest.mark.parametrize("n_items", [0, 1, 2, 50])
@pytest.mark.parametrize("n_jobs", [1, 2, 3, 100])
def test_results_come_in_order(processors, n_items, n_jobs):
    assert collect(lambda j: j * j, n_items, n_jobs) == [j * j for j in range(n_items)]


def test_a_result_before_its_turn_waits(processors):
    second_is_done = threading.Event()

    def work(j):
        if j == 0:
            assert second_is_done.wait(timeout=60)
        else:
            second_is_done.set()
        return j

    assert collect(work, 2, 2) == [0, 1]


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_what_comes_before_the_work_comes_in_order(processors, n_jobs):
    ready, at_once = [], threading.Lock()

    def before(j):
        assert at_once.acquire(blocking=False)
        ready.append(j)
        at_once.release()

    def work(j):
        assert j in ready
        return j

    taken = []
    in_order(work, taken.append, 200, n_jobs=n_jobs, uses_blas=False, before=before)
    assert ready == taken == list(range(200))

    def failing(j):
        if j == 5:
            raise ZeroDivisionError("five")

    with pytest.raises(ZeroDivisionError, match="five"):
        in_order(work, taken.append, 200, n_jobs=n_jobs, uses_blas=False, before=failing)


@pytest.mark.parametrize(("n_jobs", "most"), [(1, 1), (3, 3), (100, 4)])
def test_there_are_never_more_threads_than_allowed(processors, n_jobs, most):
    before = threading.active_count()
    names = collect(lambda _: threading.get_ident(), 200, n_jobs)
    assert len(set(names)) <= most
    assert threading.active_count() <= before + most - 1


def test_threads_stay_between_scans(processors):
    together = threading.Barrier(3)

    def work(_):
        together.wait(timeout=60)  # passes only with three threads at once
        return threading.get_ident()

    first, second = set(collect(work, 3, 3)), set(collect(work, 3, 3))
    assert first == second
    assert threading.get_ident() in first


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_error_is_raised_and_stops_the_others(processors, n_jobs):
    begun = []

    def work(j):
        begun.append(j)
        if j == 5:
            raise ZeroDivisionError("five")
        return j

    taken = []
    with pytest.raises(ZeroDivisionError, match="five"):
        in_order(work, taken.append, 10_000, n_jobs=n_jobs, uses_blas=False)
    assert len(begun) < 10_000
    assert taken == [0, 1, 2, 3, 4][: len(taken)]
    assert collect(lambda j: j, 3, n_jobs) == [0, 1, 2]  # the pool is as good as new


def test_blas_is_limited_beside_other_threads_only(processors):
    def n_threads(_):
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    with threadpool_limits(limits=2, user_api="blas"):
        as_set = n_threads(0)
        assert collect(n_threads, 4, 1, uses_blas=True) == [as_set] * 4
        limited = collect(n_threads, 4, 2, uses_blas=True)
        assert limited == [[1] * len(as_set)] * 4
        assert n_threads(0) == as_set


def test_processors_are_those_we_may_run_on():
    assert 1 <= threads.n_processors() <= os.cpu_count()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_makes_threads_of_its_own():
    script = """
import os, threading
from perpend.rows import threads
threads.n_processors = lambda: 2

def both():
    together, taken = threading.Barrier(2), []
    work = lambda j: together.wait(timeout=30)
    threads.in_order(work, taken.append, 2, n_jobs=2, uses_blas=False)
    return sorted(taken)

assert both() == [0, 1]
child = os.fork()
if child == 0:
    os._exit(0 if both() == [0, 1] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert both() == [0, 1]
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.usefixtures("processors", "one_thread")
def test_threads_change_no_bit(path, layout, dtype, seed, monkeypatch):
    monkeypatch.setattr(l1, "GROUP_ENTRIES", 2**13)
    rng = np.random.default_rng(seed)
    X = np.asarray(rng.standard_normal((5000, 20)), dtype, order=layout)
    B = rng.standard_normal((20, 7))
    weight = rng.uniform(size=5000) if seed % 2 else None

    def scan(n_jobs):
        rows = as_rows(X, weight=weight, block_rows=16, n_jobs=n_jobs)
        return rows.scan(l1_objective_and_gradient, B)[:2]

    one = scan(1)
    for n_jobs in (1, 2, 3):
        for got, expected in zip(scan(n_jobs), one, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_overlapping_scans_put_the_limit_of_blas_back(monkeypatch):
    """Two scans that overlap, the first to begin being the first to end."""
    state = {"threads": 4}

    class Limit:
        def __init__(self, limits):
            self.before, state["threads"] = state["threads"], limits

        def restore_original_limits(self):
            state["threads"] = self.before

    class Blas:
        limit = Limit

    monkeypatch.setattr(threads, "_blas", lambda: Blas)
    shared = threads.Shared(threads._limit_blas)
    shared.__enter__()
    shared.__enter__()
    assert state["threads"] == 1
    shared.__exit__()
    assert state["threads"] == 1
    shared.__exit__()
    assert state["threads"] == 4
