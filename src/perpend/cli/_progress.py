"""How far it is: a bar on a terminal, now and then a plain line elsewhere, both on stderr."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from perpend.cli._console import complain

if TYPE_CHECKING:
    from perpend.experiments._runner import Progress as RunProgress
    from perpend.solvers import Progress

PATIENCE = 10.0  # seconds between two lines where there is no terminal
EARLY = 3.0  # seconds before anything is said about the time left
MEANINGFUL = 0.05  # share of the work that must be done for that


class Monitor(Protocol):
    """Watches a fit."""

    def phase(self, text: str) -> None:
        """Say what begins now."""
        ...

    def __call__(self, progress: "Progress") -> None:
        """Be the `callback` of an estimator."""
        ...


@contextmanager
def monitor(*, quiet: bool = False) -> Iterator[Monitor]:
    """Watch over what happens inside the ``with`` block, and say nothing of it if `quiet`."""
    if quiet:
        yield _Silence()
    elif _on_terminal():
        with _bar() as bar:
            yield bar
    else:
        yield _Lines()


def _on_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class _Silence:
    def phase(self, text: str) -> None:
        pass

    def __call__(self, progress: "Progress") -> None:
        pass


class _Lines:
    def __init__(self) -> None:
        self._last: float | None = None  # loading, however slow, is no work to report
        self._left = _TimeLeft()

    def phase(self, text: str) -> None:
        pass

    def __call__(self, progress: "Progress") -> None:
        left, now = self._left(progress), time.monotonic()
        self._last = now if self._last is None else self._last
        if now - self._last > PATIENCE:
            self._last = now
            complain(_words(progress) + left, label="")


class _TimeLeft:
    """Says how long the descents may still take, by how many have come to rest so far."""

    def __init__(self) -> None:
        self._began: float | None = None

    def __call__(self, progress: "Progress") -> str:
        now = time.monotonic()
        share = _share_at_rest(progress)
        if share is None or progress.step <= 1 or self._began is None:
            self._began = now
            return ""
        passed = now - self._began
        if passed < EARLY or not MEANINGFUL <= share < 1:
            return ""
        return f", about {duration(passed * (1 - share) / share)} left"


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
        left = _TimeLeft()

        class Bar:
            def phase(self, text: str) -> None:
                display.update(task, description=text, total=None)

            def __call__(self, progress: "Progress") -> None:
                # How long a descent takes is unknown; how many have come to rest is not.
                share = _share_at_rest(progress)
                display.update(
                    task,
                    description=_words(progress) + left(progress),
                    total=None if share is None else 1.0,
                    # A full bar stops its clock for good, and more may follow.
                    completed=min(share or 0.0, 0.999),
                )

        yield Bar()


def _share_at_rest(progress: "Progress") -> float | None:
    return 1 - progress.change if progress.stage == "descent" else None


def _words(progress: "Progress") -> str:
    share = _share_at_rest(progress)
    if share is None:
        return f"polishing, step {progress.step}"
    return f"searching, step {progress.step}: {share:.0%} at rest"


# -- one thing after another -----------------------------------------------------------------------


class Steps(Protocol):
    """Watches work that consists of a known number of parts."""

    def begin(self, text: str) -> None:
        """Say what begins now."""
        ...

    def end(self) -> None:
        """One part is done."""
        ...


@contextmanager
def step_monitor(total: int) -> Iterator[Steps]:
    """Show which part of the work is on, and how long the others may take."""
    if not _on_terminal():
        yield _StepLines(total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Display

    columns = (
        SpinnerColumn("line"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
    )
    with Display(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("starting", total=total)

        def show(text: str, done: int) -> None:
            display.update(task, description=text, completed=done)

        yield _StepLines(total, show)


class _StepLines:
    """Counts the parts; what is to be said goes to `show`, or to stderr now and then."""

    def __init__(self, total: int, show: Callable[[str, int], None] | None = None) -> None:
        self._total, self._done, self._spent = total, 0, 0.0
        self._last = self._began = time.monotonic()
        self._show = show

    def begin(self, text: str) -> None:
        self._began = time.monotonic()
        words = f"{text}, {self._done} of {self._total} done{self._left()}"
        if self._show is not None:
            self._show(words, self._done)
        elif self._began - self._last > PATIENCE:
            self._last = self._began
            complain(words, label="")

    def end(self) -> None:
        self._done += 1
        self._spent += time.monotonic() - self._began

    def _left(self) -> str:
        if self._spent < EARLY:
            return ""
        # Parts differ, but the ones that are done are all that is known.
        return f", about {duration(self._spent / self._done * (self._total - self._done))} left"


def duration(seconds: float) -> str:
    """Say a time in the units one would.

    >>> duration(0.4), duration(42), duration(754), duration(12000)
    ('1 s', '42 s', '13 min', '3 h 20 min')
    """
    from perpend.experiments._pages import duration

    return duration(seconds)


# -- cases of an experiment ------------------------------------------------------------------------


@contextmanager
def case_monitor(name: str) -> Iterator[Callable[["RunProgress"], None]]:
    """Show how many cases of an experiment are done, and how long the others will take."""
    if not _on_terminal():
        yield _CaseLines(name)
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Display

    columns = (
        SpinnerColumn("line"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[words]}", markup=False),
    )
    with Display(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(name, total=1.0, words="starting")

        def show(progress: "RunProgress") -> None:
            display.update(task, completed=progress.share, words=_case_words(progress))

        yield show


class _CaseLines:
    def __init__(self, name: str) -> None:
        self._name = name
        self._last = time.monotonic()

    def __call__(self, progress: "RunProgress") -> None:
        if time.monotonic() - self._last > PATIENCE:
            self._last = time.monotonic()
            complain(f"{self._name}: {_case_words(progress)}", label="")


def _case_words(progress: "RunProgress") -> str:
    words = f"{progress.done} of {progress.total} cases"
    if progress.done == progress.total:
        return f"{words}, drawing"
    if progress.seconds_left is None:
        return words
    return f"{words}, {duration(progress.seconds_left)} left"
