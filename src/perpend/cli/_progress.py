"""How far it is: a bar on a terminal, now and then a plain line elsewhere, both on stderr."""

import math
import os
import sys
import time
from collections import deque
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
RECENT = 20  # steps whose mean time is that of the steps to come
STEADY = 2.0  # seconds that what is said of the time left stays as it is


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
        self._left = _TimeLeft(steady=0.0)  # a line is not said again, and may be fresh

    def phase(self, text: str) -> None:
        pass

    def __call__(self, progress: "Progress") -> None:
        left, now = self._left(progress), time.monotonic()
        self._last = now if self._last is None else self._last
        if now - self._last > PATIENCE:
            self._last = now
            complain(", ".join(filter(None, [_words(progress), left])), label="")


class _TimeLeft:
    """Says how long the stage may still take.

    How many steps a stage needs is unknown, but not how many it may take: that is a bound. For
    descents there is more to go by, once some of them have come to rest.
    """

    def __init__(self, *, steady: float = STEADY) -> None:
        self._steady = steady
        self._stage: str | None = None
        self._recent: deque[tuple[int, float]] = deque(maxlen=RECENT + 1)  # steps and their ends
        self._began = self._said_at = 0.0
        self._said = ""

    def __call__(self, progress: "Progress") -> str:
        now, step = time.monotonic(), progress.step
        if progress.stage != self._stage or step <= 1 or step <= self._recent[-1][0]:
            self._stage, self._began, self._said = progress.stage, now, ""
            self._recent.clear()
        self._recent.append((step, now))
        if now - self._began < EARLY:
            return ""
        if not self._said or now - self._said_at >= self._steady:
            self._said, self._said_at = self._words(progress, now), now
        return self._said

    def _words(self, progress: "Progress", now: float) -> str:
        most = self._most(progress)
        share = _share_at_rest(progress)
        if share is not None and MEANINGFUL <= share < 1:
            about = (now - self._began) * (1 - share) / share
            return f"about {clock(about if most is None else min(about, most))} left in this stage"
        return "" if most is None else f"at most {clock(most)} left in this stage"

    def _most(self, progress: "Progress") -> float | None:
        """Return the steps left times the mean time of the last ones."""
        (first, began), (last, ended) = self._recent[0], self._recent[-1]
        if progress.max_steps is None or last == first:
            return None
        return (ended - began) / (last - first) * (progress.max_steps - last)


def clock(seconds: float) -> str:
    """Write a time as a clock that counts down does; what has begun of a second counts.

    >>> clock(0.2), clock(75), clock(3725)
    ('0:01', '1:15', '1:02:05')
    """
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def _bar() -> Iterator[Monitor]:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Display

    columns = (
        SpinnerColumn("line"),
        # All of it fits into 80 columns, and what changes its length stands last.
        TextColumn("{task.description:<21}", markup=False),
        BarColumn(bar_width=12),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
    )
    with Display(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("starting", total=None, left="")
        left = _TimeLeft()

        class Bar:
            def phase(self, text: str) -> None:
                display.update(task, description=text, total=None, left="")

            def __call__(self, progress: "Progress") -> None:
                # How long a descent takes is unknown; how many have come to rest is not.
                share = _share_at_rest(progress)
                display.update(
                    task,
                    description=_stage(progress),
                    left=left(progress),
                    total=None if share is None else 1.0,
                    # A full bar stops its clock for good, and more may follow.
                    completed=min(share or 0.0, 0.999),
                )

        yield Bar()


def _share_at_rest(progress: "Progress") -> float | None:
    return 1 - progress.change if progress.stage == "descent" else None


def _words(progress: "Progress") -> str:
    share = _share_at_rest(progress)
    return _stage(progress) if share is None else f"{_stage(progress)}: {share:.0%} at rest"


def _stage(progress: "Progress") -> str:
    doing = "searching" if progress.stage == "descent" else "polishing"
    return f"{doing}, step {progress.step}"


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
