"""Dask: what a pass costs beside its work, and fits while workers are killed.

Overhead: 4 local workers of one thread scan 400,000 rows of 100 features in 16 blocks, with the
kernel of the descents and 20 directions. Every block notes when its work begins and ends; the
overhead is the time of the pass at the client, less the time from the first beginning to the last
end.

Scaling: the same pass in one process, and by 1, 2 and 4 workers. The model of the guide is checked
with it: the work over the number of workers, at most that of the processors, and the overhead that
one worker has.

Kills: a fit of 20,000 rows of 20 features in 12 blocks, on three local workers. In each trial one
of them is killed (SIGKILL) at a random moment. The fit must end, with the same bits as the fit that
nobody disturbed: normals, distances and labels.

Run ``python benchmarks/dask_cluster.py`` (some minutes); ``--kills 5`` is a quick look, ``--store``
writes benchmarks/results/dask_cluster.json.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import logging
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from _store import hardware, options, store
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

from perpend import DPCP
from perpend.datasets import make_subspace
from perpend.geometry import orthonormal
from perpend.kernels import l1_objective_and_gradient
from perpend.rows import as_rows

ROWS, D, BLOCKS, DIRECTIONS = 400_000, 100, 16, 20


def cluster_of(n_workers: int) -> LocalCluster:
    """Start workers of one thread each, from a process that has imported everything."""
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    get_mp_context().set_forkserver_preload(["distributed", "perpend.methods.dpcp", "dask.array"])
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )


# -- overhead --------------------------------------------------------------------------------------


def timed(j: int, block: Any, *, work: Callable[..., Any]) -> tuple[Any, float, float]:
    """Return the result of the work, when it began, and when it ended."""
    start = time.time()
    return work(j, block), start, time.time()


class Timed:
    """A reducer that notes how long the blocks themselves took."""

    def __init__(self, reducer: Any) -> None:
        self.reducer, self.n_blocks, self.seconds = reducer, reducer.n_blocks, 0.0

    def run(self, work: Any, only: Any = None) -> list[Any]:
        """Run the work, and note from when to when it took."""
        found = self.reducer.run(partial(timed, work=work), only)
        self.seconds = max(end for *_, end in found) - min(start for _, start, _ in found)
        return [result for result, *_ in found]


def block_of(block_info: Any = None) -> Any:
    """Return a block of Gaussian rows, always the same."""
    where = block_info[None]["array-location"][0]
    return np.random.default_rng(where[0]).standard_normal((where[1] - where[0], D))


def overheads(n_workers: int, passes: int) -> dict[str, Any]:
    """Return seconds of passes and of the work in them."""
    with cluster_of(n_workers) as cluster, Client(cluster) as client:
        client.wait_for_workers(n_workers)
        size = ROWS // BLOCKS
        X = da.map_blocks(block_of, chunks=((size,) * BLOCKS, (D,)), dtype=float)
        rows: Any = as_rows(X)
        rows._reducer = reducer = Timed(rows._reducer)
        B = orthonormal(np.random.default_rng(0).standard_normal((D, DIRECTIONS)))
        total, work = [], []
        for _ in range(passes + 3):  # the first ones prepare the rows
            start = time.perf_counter()
            rows.scan(l1_objective_and_gradient, B)
            total.append(time.perf_counter() - start)
            work.append(reducer.seconds)
    beside = 1000 * (np.array(total) - np.array(work))[3:]
    return {
        "workers": n_workers,
        "rows": ROWS,
        "features": D,
        "blocks": BLOCKS,
        "passes": passes,
        "ms_a_pass": round(1000 * float(np.median(total[3:])), 1),
        "ms_of_work": round(1000 * float(np.median(work[3:])), 1),
        "overhead_ms": {
            "median": round(float(np.median(beside)), 1),
            "90_percent": round(float(np.quantile(beside, 0.9)), 1),
        },
    }


def in_process(passes: int) -> float:
    """Return the milliseconds of the same pass over the same rows in this process."""
    size = ROWS // BLOCKS
    starts = range(0, ROWS, size)
    X = np.concatenate([np.random.default_rng(s).standard_normal((size, D)) for s in starts])
    rows, seconds = as_rows(X, memory_budget=0), []
    B = orthonormal(np.random.default_rng(0).standard_normal((D, DIRECTIONS)))
    for _ in range(passes + 3):
        start = time.perf_counter()
        rows.scan(l1_objective_and_gradient, B)
        seconds.append(time.perf_counter() - start)
    return 1000 * float(np.median(seconds[3:]))


def scaling(passes: int) -> dict[str, Any]:
    """Return passes by 1, 2 and 4 workers, beside what the model expects of them."""
    local, cores = in_process(passes), os.cpu_count() or 1
    found = [overheads(n, passes) for n in (1, 2, 4)]
    beside = found[0]["ms_a_pass"] - local
    rows = [
        {
            "workers": one["workers"],
            "ms": one["ms_a_pass"],
            "expected": round(local / min(one["workers"], cores) + beside, 1),
        }
        for one in found
    ]
    return {"processors": cores, "ms_in_process": round(local, 1), "workers": rows}


# -- kills -----------------------------------------------------------------------------------------


def fitted(X: Any) -> list[Any]:
    """Return what must be equal."""
    model = DPCP(random_state=1, affine=False).fit(X)
    found = [model.normals_, model.threshold_, model.labels_, model.distance(X)]
    return [np.asarray(one.compute() if hasattr(one, "compute") else one) for one in found]


def all_ready(cluster: LocalCluster, client: Client, seconds: float = 20.0) -> list[int]:
    """Wait until three workers are there, also one that is started again; return their ids."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        nannies = list(cluster.workers.values())
        wanted = {nanny.worker_address: nanny.process and nanny.process.pid for nanny in nannies}
        with suppress(OSError):  # one that was killed may still be listed
            if len(wanted) == 3 and client.run(os.getpid) == wanted:
                return list(wanted.values())
        time.sleep(0.2)
    return []


def undisturbed_fit(X: Any) -> tuple[list[Any], float]:
    """Return the result, and the seconds of a second fit."""
    with cluster_of(3) as cluster, Client(cluster) as client:
        all_ready(cluster, client)
        fitted(X)
        start = time.perf_counter()
        return fitted(X), time.perf_counter() - start


def disturbed(X: Any, pid: int, delay: float) -> tuple[list[Any], float, bool]:
    """Fit while a process is killed; return the result, the seconds, and if it died in time."""
    died: list[float] = []

    def kill() -> None:
        os.kill(pid, signal.SIGKILL)
        died.append(time.perf_counter())

    timer, start = threading.Timer(delay, kill), time.perf_counter()
    timer.start()
    found = fitted(X)
    end = time.perf_counter()
    timer.join()
    return found, end - start, died[0] < end


def kills(trials: int, seed: int) -> dict[str, Any]:
    """Return how many fits ended, and with equal results, while a worker was killed."""
    rng = np.random.default_rng(seed)
    rows = make_subspace(12_000, 8_000, n_features=20, codimension=5, noise=0.02, random_state=0).X
    X = da.from_array(rows, chunks=(-(-len(rows) // 12), -1))
    expected, undisturbed = undisturbed_fit(X)
    complete, equal, seconds = 0, 0, []
    while complete < trials:
        with cluster_of(3) as cluster, Client(cluster) as client:
            # A worker that is killed while it starts is not started again: then a new cluster.
            while complete < trials and (pids := all_ready(cluster, client)):
                delay = rng.uniform(0, undisturbed)
                found, took, in_time = disturbed(X, int(rng.choice(pids)), delay)
                if not in_time:  # the fit was faster, and nothing was tried
                    continue
                same = all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
                print(f"{complete}: {delay:.2f} s, {took:.2f} s, equal: {same}", flush=True)
                complete, equal = complete + 1, equal + same
                seconds.append(took)
    return {
        "trials": trials,
        "seed": seed,
        "complete": complete,
        "equal": equal,
        "seconds_undisturbed": round(undisturbed, 2),
        "seconds_median": round(float(np.median(seconds)), 2),
        "seconds_largest": round(max(seconds), 2),
    }


def main() -> None:
    """Print the figures; store them with --store."""
    parser = options(__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--passes", type=int, default=50)
    chosen = parser.parse_args()
    results = {"overhead": overheads(4, chosen.passes)}
    print(results["overhead"], flush=True)
    results["scaling"] = scaling(chosen.passes)
    print(results["scaling"], flush=True)
    results["kills"] = kills(chosen.kills, 0)
    print(results["kills"])
    if chosen.store:
        store("dask_cluster", {"hardware": hardware(), **results})


if __name__ == "__main__":
    main()
