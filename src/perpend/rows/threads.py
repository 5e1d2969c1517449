"""Threads that share the blocks of one scan, and results that come in a fixed order."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from threading import Lock
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")


def in_order(
    work: Callable[[int], Result],
    take: Callable[[Result], None],
    n_items: int,
    *,
    n_jobs: int,
    uses_blas: bool,
    before: Callable[[int], None] | None = None,
) -> None:
    """Call ``take(work(j))`` for j = 0, 1, ..., always in this order, with work in several threads.

    ``before(j)`` is called before ``work(j)``, for one item after the other and in their order.

    There are never more threads than items, or than processors that we may run on. With several,
    each of them gets one BLAS thread: BLAS's own threads wait actively and lose most of their speed
    next to other busy threads. With one, BLAS is left as it is.
    """
    threads = min(n_jobs, n_items)
    threads = min(threads, n_processors()) if threads > 1 else 1
    turns = _Turns(work, take, n_items, before)
    with _one_blas_thread if uses_blas and threads > 1 else nullcontext():
        # A helper that has not begun when all is done is let go.
        helpers = [_pool().submit(turns.serve) for _ in range(threads - 1)]
        try:
            turns.serve()
        finally:
            for helper in helpers:
                if not helper.cancel():
                    helper.result()


def n_processors() -> int:
    """Return the number of processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Turns(Generic[Result]):
    """Items that several threads claim one by one, and results taken in the order of the items."""

    def __init__(
        self,
        work: Callable[[int], Result],
        take: Callable[[Result], None],
        n_items: int,
        before: Callable[[int], None] | None,
    ) -> None:
        self._work, self._take, self._before = work, take, before
        self._unclaimed = iter(range(n_items))
        self._waiting: dict[int, Result] = {}  # results that came before their turn
        self._turn = 0
        self._lock = Lock()

    def serve(self) -> None:
        """Work until no item is left. After an error nobody claims another one."""
        try:
            while (j := self._claim()) is not None:
                result = self._work(j)
                with self._lock:
                    self._waiting[j] = result
                    while self._turn in self._waiting:
                        self._take(self._waiting.pop(self._turn))
                        self._turn += 1
        except BaseException:
            self._unclaimed = iter(range(0))
            raise

    def _claim(self) -> int | None:
        with self._lock:
            j = next(self._unclaimed, None)
            if j is not None and self._before is not None:
                self._before(j)
            return j


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the helpers of this process, made when first needed; they wait without using time."""
    return ThreadPoolExecutor(max(1, n_processors() - 1), thread_name_prefix="perpend")


@cache
def _blas() -> Any:
    """Return the control over BLAS's threads; finding the libraries costs milliseconds."""
    return ThreadpoolController()


class Shared:
    """A change of the whole process that several may want at once; `begin` returns what undoes it.

    The first one makes it, the last one undoes it. Changes of their own would overlap, and the last
    to be undone would put back the first one.
    """

    def __init__(self, begin: Callable[[], Callable[[], object]]) -> None:
        self._begin = begin
        self.forget()

    def forget(self) -> None:
        """Forget that anybody wanted it."""
        self._lock, self._users = Lock(), 0

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._end = self._begin()
            self._users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._end()


def _limit_blas() -> Callable[[], object]:
    restore: Callable[[], object] = _blas().limit(limits=1).restore_original_limits
    return restore


_one_blas_thread = Shared(_limit_blas)


def _after_fork() -> None:
    """Forget threads and users: neither survives a fork, and the child makes its own."""
    _pool.cache_clear()
    _one_blas_thread.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
