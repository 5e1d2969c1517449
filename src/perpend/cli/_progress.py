"""How far it is: a bar on a terminal, now and then a plain line elsewhere, both on stderr."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from perpend.cli._console import complain

if TYPE_CHECKING:
    from perpend.solvers import Progress

PATIENCE = 10.0  # seconds between two lines where there is no terminal


class Monitor(Protocol):
    """Watches a fit."""

    def phase(self, text: str) -> None:
        """Say what begins now."""
        ...

    def __call__(self, progress: "Progress") -> None:
        """Be the `callback` of an estimator."""
        ...


@contextmanager
def monitor() -> Iterator[Monitor]:
    """Watch over what happens inside the ``with`` block."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with _bar() as bar:
            yield bar
    else:
        yield _Lines()


class _Lines:
    def __init__(self) -> None:
        self._last = time.monotonic()

    def phase(self, text: str) -> None:
        pass

    def __call__(self, progress: "Progress") -> None:
        if time.monotonic() - self._last > PATIENCE:
            self._last = time.monotonic()
            complain(_words(progress), label="")


@contextmanager
def _bar() -> Iterator[Monitor]:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Display

    columns = (
        SpinnerColumn("line"),
        TextColumn("{task.description:<32}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
    )
    with Display(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("starting", total=None)

        class Bar:
            def phase(self, text: str) -> None:
                display.update(task, description=text, total=None)

            def __call__(self, progress: "Progress") -> None:
                # How long a descent takes is unknown; how many have come to rest is not.
                share = _share_at_rest(progress)
                display.update(
                    task,
                    description=_words(progress),
                    total=None if share is None else 1.0,
                    completed=share or 0.0,
                )

        yield Bar()


def _share_at_rest(progress: "Progress") -> float | None:
    return 1 - progress.change if progress.stage == "descent" else None


def _words(progress: "Progress") -> str:
    share = _share_at_rest(progress)
    if share is None:
        return f"polishing, step {progress.step}"
    return f"searching, step {progress.step}: {share:.0%} at rest"
