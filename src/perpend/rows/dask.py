"""Rows of Dask arrays and dataframes: blocks stay on the workers, and one task a worker scans them.

Blocks are made by tasks that can run again, so that those of a lost worker are made anew. A pass is
one task for each worker over the blocks that it holds; who holds what is looked up again when time
has passed or something failed. This module is imported when the first Dask collection is seen.
"""

import asyncio
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import Any

import dask
import numpy as np

from perpend._typing import Array
from perpend.exceptions import ClusterError, InputError
from perpend.rows.array import MEMORY_BUDGET
from perpend.rows.blocks import Block, RemoteRows, Result, new_key
from perpend.rows.kinds import is_lazy
from perpend.rows.lazy import MEMORY_LIMIT, LazyRows
from perpend.rows.stored import floats_for
from perpend.rows.threads import in_order, n_processors
from perpend.rows.unchanged import Unchanged

PATIENCE = 600.0  # seconds; twice the time after which a scheduler gives up a silent worker
"""How long a fit waits without progress, unless Dask's configuration has `perpend.patience`."""

TICK = 1.0  # seconds between two checks of the workers, while a pass takes longer
PLACES_LAST = 1.0  # seconds for which it is believed who holds what
BLOCK_BYTES = 2**27  # of rows that are spread over workers: 128 MiB, as Dask's own default
BLOCKS_PER_THREAD = 4  # so that a lost worker's blocks are shared by the others
SILENT = 30.0  # seconds without a heartbeat, which workers send every few seconds
MOST_KILLED = 2  # times in one pass that Dask gives up a task, each after losing 4 workers with it


def dask_rows(X: Any, device: Any = None) -> RemoteRows:
    """Return the rows of a Dask array or dataframe; its blocks are made where they will stay."""
    X = as_dask_array(X)
    D, dtype = int(X.shape[1]), floats_for(X.dtype, "X")
    chunks, sizes = X.to_delayed().ravel(), np.array(X.chunks[0], dtype=float)
    some = np.flatnonzero(sizes)  # or of unknown size
    make = dask.delayed(make_block, pure=False)
    tasks = [make(chunks[j], j, D, dtype) for j in some.tolist()]
    reducer = _reducer(tasks, float(sizes.sum()) * D * dtype.itemsize, some.tolist())
    if np.isnan(sizes).any():
        sizes = np.array(reducer.run(n_rows_of))
        reducer.keep(np.flatnonzero(sizes).tolist())
        some = some[sizes > 0]
        sizes = sizes[sizes > 0]
    else:
        sizes = sizes[some].astype(int)
    limit = int(dask.config.get("perpend.memory-limit", MEMORY_LIMIT))
    return RemoteRows(
        reducer,
        sizes.tolist(),
        D,
        dtype,
        numbers=some.tolist(),
        device=device,
        memory_limit=limit,
    )


def as_dask_array(X: Any) -> Any:
    """Return a Dask array with whole rows in each block, or say how to get one."""
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array()
    if X.ndim != 2:
        raise InputError(
            f"X has {X.ndim} dimensions; expected 2: rows and features. Use X.reshape(-1, 1) for "
            "one feature, or X.reshape(1, -1) for one row."
        )
    if X.numblocks[1] > 1:
        raise InputError(
            f"X is split along its columns (chunks {X.chunks[1]}), and a block must hold whole "
            "rows. Pass X.rechunk({1: -1})."
        )
    return X


def mapped(function: Callable[..., Array], X: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what a function gives for the rows of each block, as a lazy Dask array."""
    X = as_dask_array(X)
    one = function(np.zeros((1, X.shape[1]), floats_for(X.dtype, "X")), *args, **kwargs)
    how: dict[str, Any] = (
        {"drop_axis": 1} if one.ndim == 1 else {"chunks": (X.chunks[0], one.shape[1])}
    )
    first = np.cumsum([0.0, *X.chunks[0]])
    work = partial(
        _of_block, function=function, none=one[:0], first=first, args=args, kwargs=kwargs
    )
    return X.map_blocks(work, dtype=one.dtype, meta=one[:0], **how)


def _of_block(
    block: Any,
    *,
    function: Callable[..., Array],
    none: Array,
    first: Array,
    args: Any,
    kwargs: Any,
    block_id: tuple[int, ...] | None = None,
) -> Array:
    rows = np.asarray(block)
    try:
        return function(rows, *args, **kwargs) if len(rows) else none
    except InputError as error:
        j = block_id[0] if block_id else 0
        start = "" if np.isnan(first[j]) else f", which begins at row {first[j]:.0f}"
        raise InputError(f"In block {j} of X{start}: {error}") from error


def spread(X: Array | LazyRows, n_threads: int) -> Any:
    """Return rows as a Dask array, with some blocks for each thread.

    Rows in memory travel with the graph; those that are read are read by the workers, from the same
    path, in blocks that fit into their memory limit.
    """
    import dask.array as da

    n, D = X.shape
    most = X.window_rows if is_lazy(X) else max(1, BLOCK_BYTES // (D * X.dtype.itemsize))
    size = max(1, min(most, -(-n // (BLOCKS_PER_THREAD * max(1, n_threads)))))
    if not is_lazy(X):
        return da.from_array(X, chunks=(size, D))
    rows = [min(size, n - start) for start in range(0, n, size)]
    # As bytes, so that the scheduler need not open the file; as one task, so that they travel once.
    packed = dask.delayed(pickle.dumps(X), traverse=False)
    none: Array = np.empty((0, D), X.dtype)
    return da.map_blocks(_read, packed, chunks=(tuple(rows), (D,)), dtype=X.dtype, meta=none)


def _read(packed: bytes, block_info: Any = None) -> Array:
    lazy: LazyRows = pickle.loads(packed)
    start, stop = block_info[None]["array-location"][0]
    return lazy[start:stop]


def make_block(X: Any, j: int, n_features: int, dtype: Any) -> Block:
    """Return a chunk as a block, or say what is wrong with it."""
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != n_features:
        raise InputError(
            f"Block {j} of X has shape {X.shape}; expected (rows, {n_features}), as X.shape says."
        )
    try:
        return Block(X.astype(dtype, copy=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"Block {j} of X is no array of numbers: {error}.") from error


def weigh_block(block: Block, weight: Array) -> Block:
    """Return the same rows with weights; they are not copied."""
    return Block(block.X, weight)


def n_rows_of(_: int, block: Block) -> int:
    """Return the number of rows of a block."""
    return int(block.X.shape[0])


def _reducer(tasks: list[Any], n_bytes: float, numbers: list[int]) -> "ClusterBlocks | LocalBlocks":
    """Return the one that Dask would use: the cluster of a client, or this process."""
    distributed = sys.modules.get("distributed")  # without it, there is no client
    if distributed is not None:
        try:
            client = distributed.default_client()
        except ValueError:
            client = None
        if client is not None:
            return ClusterBlocks(client, tasks)
    return LocalBlocks(tasks, n_bytes, numbers)


class LocalBlocks:
    """Blocks in this process, if they fit its memory; otherwise they are made in every pass."""

    def __init__(self, tasks: list[Any], n_bytes: float, numbers: list[int]) -> None:
        self._tasks, self._numbers, self._unchanged = tasks, numbers, Unchanged()
        self._blocks: Sequence[Block] | None = None
        if n_bytes <= MEMORY_BUDGET:
            self._blocks = dask.compute(*tasks)

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return len(self._tasks)

    def weighted(self, pieces: Sequence[Array]) -> "LocalBlocks":
        """Return the same blocks with weights."""
        weigh = dask.delayed(weigh_block, pure=False)
        tasks = [weigh(*one) for one in zip(self._tasks, pieces, strict=True)]
        new = LocalBlocks(tasks, np.inf, self._numbers)
        new._unchanged = self._unchanged
        if self._blocks is not None:
            new._blocks = [weigh_block(*one) for one in zip(self._blocks, pieces, strict=True)]
        return new

    def keep(self, some: list[int]) -> None:
        """Forget the other blocks."""
        self._tasks = [self._tasks[j] for j in some]
        self._numbers, self._unchanged = [self._numbers[j] for j in some], Unchanged()
        if self._blocks is not None:
            self._blocks = [self._blocks[j] for j in some]

    def run(
        self, work: Callable[[int, Block], Result], only: Sequence[int] | None = None
    ) -> list[Result]:
        """Return ``work(j, block)`` for all blocks, or for some, in the order of the blocks."""
        numbers: Sequence[int] = range(self.n_blocks) if only is None else only
        blocks, results = self._blocks, list[Result]()

        def one(i: int) -> Result:
            j = numbers[i]
            return work(j, self._made(j) if blocks is None else blocks[j])

        n_jobs = 1 if blocks is None else n_processors()  # Dask has threads of its own
        in_order(one, results.append, len(numbers), n_jobs=n_jobs, uses_blas=True)
        return results

    def _made(self, j: int) -> Block:
        block: Block = self._tasks[j].compute()
        number = self._numbers[j]
        self._unchanged.require(j, block.X, lambda i: f"row {i} of block {number} of X")
        return block


# -- on a cluster ----------------------------------------------------------------------------------


class ClusterBlocks:
    """Blocks on the workers of a Dask cluster: one task for each worker and pass."""

    def __init__(
        self, client: Any, tasks: Sequence[Any], parent: "ClusterBlocks | None" = None
    ) -> None:
        if client.asynchronous:
            raise InputError(
                "The Dask client is asynchronous, and a fit waits for its results. Use a Client "
                "without asynchronous=True."
            )
        self._client, self._tasks, self._parent = client, tasks, parent
        self._address = client.scheduler.address
        self._placed: tuple[float, list[str]] = -np.inf, []  # since when, and who holds each block
        self._blocks: list[Any] = []  # futures
        self._make()

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return len(self._tasks)

    def weighted(self, pieces: Sequence[Array]) -> "ClusterBlocks":
        """Return the same blocks with weights, which travel with the graph."""
        return ClusterBlocks(self._client, pieces, self)

    def keep(self, some: list[int]) -> None:
        """Forget the other blocks."""
        self._tasks = [self._tasks[j] for j in some]
        self._blocks = [self._blocks[j] for j in some]
        self._placed = -np.inf, []

    def run(
        self, work: Callable[[int, Block], Result], only: Sequence[int] | None = None
    ) -> list[Result]:
        """Return ``work(j, block)`` for all blocks, or for some, in the order of the blocks."""
        wanted, found = list(range(self.n_blocks) if only is None else only), dict[int, Result]()
        watch = _Watch(self._client, self._address)
        while missing := [j for j in wanted if j not in found]:
            watch.check_connection()
            if not self._are_made(watch):
                continue
            tasks = self._submitted(work, missing, watch)
            watch.wait(list(tasks), movable=True)
            done = {task: js for task, js in tasks.items() if task.status == "finished"}
            for js, values in zip(done.values(), watch.gathered(list(done)), strict=False):
                found.update(zip(js, values, strict=True))
            if any(j not in found for j in missing):
                watch.raise_errors(tasks)
                self._placed = -np.inf, []
        return [found[j] for j in wanted]

    def _make(self) -> None:
        with warnings.catch_warnings():  # weights travel with their tasks, which can run again
            warnings.filterwarnings("ignore", "Sending large graph")
            if self._parent is None:
                self._blocks = self._client.compute(self._tasks)
            else:
                self._blocks = self._client.map(
                    weigh_block, self._parent.sound(), self._tasks, pure=False
                )
        self._are_new = True

    def sound(self) -> list[Any]:
        """Return the blocks as futures, made anew where some are lost."""
        if any(block.status in ("cancelled", "lost") for block in self._blocks):
            self._make()
        return self._blocks

    def _are_made(self, watch: "_Watch") -> bool:
        """Have lost blocks made again, and wait until new ones are made where there is room."""
        broken = [block for block in self._blocks if block.status not in ("pending", "finished")]
        if broken:
            watch.raise_errors(broken)
            with watch.connected():
                if any(block.status != "error" for block in broken):
                    self._make()
                else:
                    self._client.sync(_retry, self._client, [block.key for block in broken])
            self._are_new = True
        if self._are_new:
            watch.wait(self._blocks, movable=False)
            self._are_new = not all(block.status == "finished" for block in self._blocks)
        return not self._are_new

    def _submitted(self, work: Any, numbers: list[int], watch: "_Watch") -> dict[Any, list[int]]:
        """Submit one task for each worker, and return the blocks of each."""
        groups: dict[str, list[int]] = {}
        holders = self._holders(watch)
        for j in numbers:
            groups.setdefault(holders[j], []).append(j)
        with watch.connected():
            return {
                self._client.submit(
                    run_blocks,
                    work,
                    js,
                    *(self._blocks[j] for j in js),
                    workers=[address] if address else None,
                    allow_other_workers=bool(address),
                    key=f"perpend-{new_key()}",
                ): js
                for address, js in groups.items()
            }

    def _holders(self, watch: "_Watch") -> list[str]:
        """Return the worker for each block: one that holds it, with as few others as can be."""
        when, holders = self._placed
        if time.monotonic() - when < PLACES_LAST:
            return holders
        running = watch.running()
        with watch.connected():
            who = self._client.who_has([block.key for block in self._blocks])
        load, holders = dict[str, int](), []
        for block in self._blocks:
            able = [a for a in who.get(block.key, ()) if a in running] or sorted(running) or [""]
            address = min(able, key=lambda a: load.get(a, 0))
            load[address] = load.get(address, 0) + 1
            holders.append(address)
        self._placed = time.monotonic(), holders
        return holders


def run_blocks(work: Callable[[int, Block], Result], numbers: list[int], *blocks: Block) -> Any:
    """Do the work of one worker in a pass, with the threads of that worker."""
    from distributed import get_worker

    results: list[Result] = []
    in_order(
        lambda i: work(numbers[i], blocks[i]),
        results.append,
        len(blocks),
        n_jobs=get_worker().state.nthreads,
        uses_blas=True,
    )
    return results


def _gone(address: str) -> str:
    limit = dask.config.get("distributed.comm.timeouts.connect")
    return (
        f"The scheduler at {address} is gone: Dask's client has not reached it for {limit} "
        "(distributed.comm.timeouts.connect). Start a scheduler with workers, and fit again."
    )


def _is_killed(error: BaseException) -> bool:
    """Tell whether Dask has given up a task because its workers died."""
    return type(error).__name__ == "KilledWorker"


async def _retry(client: Any, keys: list[str]) -> None:
    """Do what ``client.retry`` does, which fails if what a task needs has failed as well."""
    for key in await client.scheduler.retry(keys=keys, client=client.id):
        if key in client.futures:
            client.futures[key].retry()


async def _are_done(tasks: list[Any]) -> bool:
    """Wait a little; return whether all tasks are done or lost.

    No error is raised: its traceback would hold the blocks until the next garbage collection.
    """
    from distributed import wait

    waiting = asyncio.ensure_future(wait(tasks))
    # asyncio wants somebody to have heard of an error, also after Ctrl-C: that tasks are lost.
    waiting.add_done_callback(lambda end: end.cancelled() or end.exception())
    await asyncio.wait([waiting], timeout=TICK)
    if not waiting.done():
        waiting.cancel()
        return False
    return True


class _Watch:
    """Waits for tasks until they end, or the cluster can no longer finish them."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address, self._n_killed, self._n_done = client, address, 0, 0
        self._patience = float(dask.config.get("perpend.patience", PATIENCE))
        self._moved = time.monotonic()  # when there was progress last
        self._heard: dict[str, tuple[float, float]] = {}  # last heartbeats, and when they were new

    def wait(self, tasks: list[Any], *, movable: bool) -> None:
        """Wait until all are done or one has failed, or one on a paused worker can move."""
        while True:
            with self.connected():
                if self._client.sync(_are_done, tasks):
                    return
            done = [task for task in tasks if task.status != "pending"]
            if any(task.status != "finished" for task in done):
                return
            self.check_connection()
            workers = self.running()
            with self.connected():
                busy = self._client.processing()
            active = any(busy.get(address) for address in workers if self._is_heard(address))
            if active or len(done) > self._n_done:
                self._moved = time.monotonic()
            self._n_done = len(done)
            if time.monotonic() - self._moved > self._patience:
                raise self._no_progress()
            paused = [keys for address, keys in busy.items() if address not in workers]
            stuck = any(task.key in keys for task in tasks for keys in paused)
            if movable and workers and stuck:
                return

    def check_connection(self) -> None:
        """Wait while the client tries to reach the scheduler; say clearly if it has given up."""
        while (status := self._client.status) != "running":
            if status in ("closing", "closed"):
                raise ClusterError(_gone(self._address))
            time.sleep(TICK)

    def _is_heard(self, address: str) -> bool:
        return time.monotonic() - self._heard[address][1] < SILENT

    def _no_progress(self) -> ClusterError:
        info = self.workers()
        states = ", ".join(sorted({worker["status"] for worker in info.values()}))
        return ClusterError(
            f"No progress for {self._patience:.0f} s: the scheduler at {self._address} has "
            f"{len(info)} workers{states and f' ({states})'}. Start workers and fit again. "
            "dask.config.set({'perpend.patience': seconds}) sets how long a fit waits."
        )

    def workers(self) -> dict[str, Any]:
        """Return what the scheduler knows about its workers."""
        with self.connected():
            # Not scheduler_info, which names five workers only in some versions.
            known: dict[str, Any] = self._client.sync(self._client.scheduler.identity)["workers"]
        return known

    def running(self) -> set[str]:
        """Return the workers that may be given tasks."""
        workers = self.workers()
        for address, worker in workers.items():
            if self._heard.get(address, (None, 0.0))[0] != worker["last_seen"]:
                self._heard[address] = worker["last_seen"], time.monotonic()
        return {address for address, worker in workers.items() if worker["status"] == "running"}

    def gathered(self, tasks: list[Any]) -> list[Any]:
        """Return the results of finished tasks, or nothing if some of them were lost since."""
        if not tasks:
            return []
        gather, limit = partial(self._client.gather, asynchronous=True), self._patience
        try:
            with self.connected():
                found: list[Any] = self._client.sync(gather, tasks, callback_timeout=limit)
                return found
        except TimeoutError as error:  # they were lost, and nobody computes them again
            raise self._no_progress() from error
        except CancelledError:
            return []
        except Exception as error:
            if _is_killed(error):
                return []
            raise

    def raise_errors(self, tasks: Iterable[Any]) -> None:
        """Raise what a task has raised; that its workers died is no error, unless again and again.

        Dask gives up a task after it has lost four workers with it, which may be nobody's fault.
        """
        errors = [task.exception() for task in tasks if task.status == "error"]
        for error in errors:
            if not _is_killed(error):
                raise error
        self._n_killed += bool(errors)
        if self._n_killed > MOST_KILLED:
            raise ClusterError(
                f"Workers died again and again: {errors[0]} Are they out of memory? Use smaller "
                "blocks (X.rechunk), or workers with more memory."
            ) from errors[0]

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Say clearly if the scheduler is gone."""
        try:
            yield
        except (AttributeError, OSError, RuntimeError, ValueError) as error:
            if self._client.status == "running":
                raise
            raise ClusterError(_gone(self._address)) from error
