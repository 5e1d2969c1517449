"""How far a piece of work is: one monitor for fits, methods and experiments, and its bar."""

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from perpend.solvers import Progress

EARLY = 3.0  # seconds before anything is said about the time left
MEANINGFUL = 0.05  # share of the work that must be done for that
RECENT = 20  # steps whose mean time stands for that of the steps to come
HOLD_SECONDS = 2.0  # for so long the text about the time left stays as it is


class Monitor:
    """Says in words how far the work is; this base class shows nothing.

    Parameters
    ----------
    steady : float
        Seconds for which the text about the time left stays as it is.
    """

    def __init__(self, *, steady: float = HOLD_SECONDS) -> None:
        self._left = TimeLeft(steady=steady)
        self._began = 0.0

    def show(self, doing: str, share: float | None = None, words: str = "") -> None:
        """Say what is going on.

        Parameters
        ----------
        doing : str
        share : float, optional
            The share that is done, from 0 to 1, if it is known.
        words : str
            More text.
        """

    def phase(self, text: str) -> None:
        """Say what begins now; how long it takes is unknown.

        Parameters
        ----------
        text : str
        """
        self.show(text)

    def part(self, text: str, done: int, total: int) -> None:
        """Say that another part begins now.

        Parameters
        ----------
        text : str
        done, total : int
            How many parts are done, and how many there are.
        """
        now = time.monotonic()
        self._began = self._began if done else now
        spent, left = now - self._began, ""
        if done and spent > EARLY:
            # Parts differ, but nothing else is known.
            left = f"about {clock(spent / done * (total - done))} left"
        self.show(f"{text}, {done + 1} of {total}", done / total, left)

    def __call__(self, progress: "Progress") -> None:
        """Be the `callback` of an estimator."""
        doing = "searching" if progress.stage == "descent" else "polishing"
        self.show(f"{doing}, step {progress.step}", share_done(progress), self._left(progress))


def share_done(progress: "Progress") -> float | None:
    """Return the share of starts that have converged; None for stages other than descents."""
    return 1 - progress.change if progress.stage == "descent" else None


class TimeLeft:
    """Says how long the stage may still take.

    How many steps a stage needs is unknown, but the maximum is known: that gives a bound. For
    descents the share that has converged gives a better estimate.
    """

    def __init__(self, *, steady: float = HOLD_SECONDS) -> None:
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
        share = share_done(progress)
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
    """Write a time as on a clock that counts down; seconds are rounded up.

    >>> clock(0.2), clock(75), clock(3725)
    ('0:01', '1:15', '1:02:05')
    """
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class ProgressBar(Monitor):
    """A bar on stderr that follows a fit; for ``callback=``, inside a ``with`` block.

    In a descent the bar is the share of starts that have converged. Other stages only count their
    steps.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where it is drawn.

    Examples
    --------
    >>> from perpend import DPCP
    >>> from perpend.callbacks import ProgressBar
    >>> from perpend.datasets import make_subspace
    >>> X = make_subspace(100, 100, n_features=6, codimension=2, random_state=0).X
    >>> with ProgressBar() as bar:
    ...     model = DPCP(callback=bar, random_state=1).fit(X)
    """

    def __init__(self, console: Any = None) -> None:
        super().__init__()
        self.console = console
        self._display: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._display = Progress(
            SpinnerColumn("line"),
            # All of it fits into 80 columns, and what changes its length stands last.
            TextColumn("{task.description:<21}", markup=False),
            BarColumn(bar_width=8),
            TextColumn("{task.fields[percent]:>4}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[words]}", markup=False),
            console=self.console or Console(stderr=True),
            transient=True,
        )
        self._display.start()
        self._task = self._display.add_task("starting", total=None, percent="", words="")
        return self

    def __exit__(self, *_: object) -> None:
        self._display.stop()
        self._display = None

    def show(self, doing: str, share: float | None = None, words: str = "") -> None:
        """Say what is going on; nothing outside the ``with`` block."""
        if self._display is None:
            return
        self._display.update(
            self._task,
            description=doing,
            percent="" if share is None else f"{share:.0%}",
            words=words,
            total=None if share is None else 1.0,
            # A full bar stops its clock for good, and more may follow.
            completed=min(share or 0.0, 0.999),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself: scikit-learn copies parameters when it clones, and there is one screen."""
        return self
