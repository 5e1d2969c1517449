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
from collections.abc import Generator, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import cast

from perpend.experiments._experiment import Case, Tables
from perpend.experiments._store import Outcome, plain

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


def compute(module: str, cases: Sequence[Case], jobs: int) -> Generator[Outcome | None]:
    """Compute cases by ``EXPERIMENT.run`` of a module, in so many processes.

    Yields outcomes as they come, or None when nothing has come for half a second. Closing the
    generator ends all processes at once.
    """
    todo = deque(cases)
    workers: dict[Connection, tuple[SpawnProcess, Case]] = {}
    try:
        while todo or workers:
            while todo and len(workers) < jobs:
                pipe, process = _start(module)
                workers[pipe] = process, _send(pipe, todo.popleft())
            ready = wait(list(workers), timeout=HEARTBEAT)
            if not ready:
                yield None
            for pipe in cast("list[Connection]", ready):
                process, case = workers[pipe]
                try:
                    outcome = Outcome(case, *pipe.recv())
                    alive = True
                except (EOFError, OSError):
                    outcome, alive = Outcome(case, {}, 0.0, _death(process)), False
                if alive and todo:
                    workers[pipe] = process, _send(pipe, todo.popleft())
                else:
                    del workers[pipe]
                    pipe.close()
                    process.join()
                yield outcome
    finally:
        for pipe, (process, _) in workers.items():
            pipe.close()
            process.kill()
            process.join()


def _start(module: str) -> tuple[Connection, SpawnProcess]:
    """Start a worker, which leaves Ctrl-C to this process."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_work, args=(module, theirs), daemon=True
    )
    in_main = threading.current_thread() is threading.main_thread()  # signals are set only there
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main else None
    try:
        process.start()
    finally:
        if in_main:
            signal.signal(signal.SIGINT, handler)
    theirs.close()
    return ours, process


def _send(pipe: Connection, case: Case) -> Case:
    with suppress(OSError):  # if the worker is dead already, receiving says so
        pipe.send(case)
    return case


def _death(process: SpawnProcess) -> str:
    """Return why there will be no outcome."""
    process.join()
    code = process.exitcode
    why = "killed, perhaps for lack of memory" if code == KILLED else f"exit code {code}"
    return f"its process ended before it was done ({why})"


# -- in the worker ---------------------------------------------------------------------------------


def _work(module: str, pipe: Connection) -> None:
    os.environ.update(ONE_THREAD)
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
