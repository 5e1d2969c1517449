"""Progress: a bar on a terminal, now and then a plain line elsewhere, both on stderr."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from perpend._progress import Monitor, ProgressBar
from perpend.cli._console import complain

LINE_SECONDS = 10.0  # between two lines, if there is no terminal


@contextmanager
def monitor(*, quiet: bool = False) -> Iterator[Monitor]:
    """Yield a monitor that shows the progress of the ``with`` block, or nothing if `quiet`."""
    if quiet:
        yield Monitor()
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with ProgressBar() as bar:
            yield bar
    else:
        yield _Lines()


class _Lines(Monitor):
    def __init__(self) -> None:
        super().__init__(steady=0.0)  # a line is printed once, so it need not be steady
        self._last: float | None = None  # the clock starts after loading

    def phase(self, text: str) -> None:
        pass

    def show(self, doing: str, share: float | None = None, words: str = "") -> None:
        now = time.monotonic()
        self._last = now if self._last is None else self._last
        if now - self._last > LINE_SECONDS:
            self._last = now
            details = ["" if share is None else f"{share:.0%} done", words]
            complain(": ".join(filter(None, [doing, ", ".join(filter(None, details))])), label="")
