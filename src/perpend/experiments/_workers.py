"""Worker processes that compute cases, each with one BLAS thread.

Each worker is a fresh process with a pipe of its own. So the numbers depend neither on how many
there are nor on what else this process has loaded; a worker that dies (out of memory, say) takes
only its case with it; and an interruption ends them at once.
"""

import multiprocessing
import os
import signal
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from perpend.experiments._experiment import Case, Tables
from perpend.experiments._store import plain

# BLAS and OpenMP read these when they are loaded, before threadpoolctl could tell them anything.
ONE_THREAD = dict.fromkeys(
    (
        *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
        *("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
    ),
    "1",
)
HEARTBEAT = 0.5  # seconds after which the caller hears that nothing has happened
KILLED = -9  # exit code


@dataclass(frozen=True)
class Outcome:
    """What became of a case: tables, or the error in words."""

    case: Case
    tables: Tables
    seconds: float
    error: str = ""


@dataclass
class _Worker:
    process: Any
    case: Case


def compute(module: str, cases: Sequence[Case], jobs: int) -> Generator[Outcome | None]:
    """Compute cases in worker processes, and yield the outcomes as they come.

    Parameters
    ----------
    module : str
        The module whose ``EXPERIMENT.run`` computes a case.
    cases : sequence
        In the order in which they are begun.
    jobs : int
        Number of processes.

    Yields
    ------
    An outcome, or None when nothing has come for half a second. Closing the generator ends all
    processes at once.
    """
    todo = deque(cases)
    workers: dict[Connection, _Worker] = {}
    try:
        while todo and len(workers) < jobs:
            _start(module, todo, workers)
        while workers:
            ready = wait(list(workers), timeout=HEARTBEAT)
            if not ready:
                yield None
            for pipe in ready:
                yield _receive(cast("Connection", pipe), module, todo, workers)
    finally:
        for pipe, worker in workers.items():
            pipe.close()
            worker.process.kill()
            worker.process.join()


def _start(module: str, todo: deque[Case], workers: dict[Connection, _Worker]) -> None:
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_work, args=(module, theirs), daemon=True)
    with _surroundings_of_children():
        process.start()
    theirs.close()
    workers[ours] = _Worker(process, todo.popleft())
    with suppress(OSError):  # if it is dead already, receiving says so
        ours.send(workers[ours].case)


def _receive(
    pipe: Connection, module: str, todo: deque[Case], workers: dict[Connection, _Worker]
) -> Outcome:
    """Take an outcome, and give the worker, or a new one in its place, the next case."""
    worker = workers[pipe]
    try:
        outcome = Outcome(worker.case, *pipe.recv())
    except (EOFError, OSError):
        worker.process.join()
        code = worker.process.exitcode
        why = "killed, perhaps for lack of memory" if code == KILLED else f"exit code {code}"
        outcome = Outcome(worker.case, {}, 0.0, f"its process ended before it was done ({why})")
    else:
        if todo:
            worker.case = todo.popleft()
            with suppress(OSError):  # if it is dead, the next call says so
                pipe.send(worker.case)
            return outcome
    del workers[pipe]
    pipe.close()
    worker.process.join()
    if todo:
        _start(module, todo, workers)
    return outcome


@contextmanager
def _surroundings_of_children() -> Iterator[None]:
    """Let processes started now have one thread, and leave Ctrl-C to this one."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    in_main = threading.current_thread() is threading.main_thread()  # signals are set only there
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        if in_main:
            signal.signal(signal.SIGINT, handler)


# -- in the worker ---------------------------------------------------------------------------------


def _work(module: str, pipe: Connection) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # the parent has gone
        while True:
            pipe.send(_computed(module, pipe.recv()))


def _computed(module: str, case: Case) -> tuple[Tables, float, str]:
    began = time.perf_counter()
    try:
        from threadpoolctl import threadpool_limits

        run = import_module(module).EXPERIMENT.run
        # Warnings are about single fits; an experiment counts how they ended instead.
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.perf_counter()  # without the time to load everything
            tables, error = plain(run(case)), ""
    except Exception as problem:  # noqa: BLE001  one case must not take the others with it
        tables, error = {}, f"{type(problem).__name__}: {problem}"
        if os.environ.get("PERPEND_DEBUG") == "1":
            error += "\n" + traceback.format_exc()
    return tables, time.perf_counter() - began, error


def _end_with_parent() -> None:
    """Stop when the parent is gone, even in the middle of a long case."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
