"""How far it is: a bar on a terminal, now and then a plain line elsewhere, both on stderr."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from perpend._progress import Monitor, ProgressBar
from perpend.cli._console import complain

PATIENCE = 10.0  # seconds between two lines where there is no terminal


@contextmanager
def monitor(*, quiet: bool = False) -> Iterator[Monitor]:
    """Watch over what happens inside the ``with`` block, and say nothing of it if `quiet`."""
    if quiet:
        yield Monitor()
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with ProgressBar() as bar:
            yield bar
    else:
        yield _Lines()


class _Lines(Monitor):
    def __init__(self) -> None:
        super().__init__(steady=0.0)  # a line is not said again, and may be fresh
        self._last: float | None = None  # loading, however slow, is no work to report

    def phase(self, text: str) -> None:
        pass

    def _show(self, doing: str, share: float | None, words: str) -> None:
        now = time.monotonic()
        self._last = now if self._last is None else self._last
        if now - self._last > PATIENCE:
            self._last = now
            details = ["" if share is None else f"{share:.0%} done", words]
            complain(": ".join(filter(None, [doing, ", ".join(filter(None, details))])), label="")
