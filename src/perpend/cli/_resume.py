"""``perpend fit --resume``: a fit that goes on wherever it was killed, also among its results.

The results are moved to their folder one by one. Before that, the checkpoint notes their names, so
that the same command may replace those that are there already; after it, the checkpoint is deleted.
"""

import json as json_text
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from perpend import __version__
from perpend._json import plain
from perpend.cli import _output
from perpend.cli._console import Refusal, complain, say_json
from perpend.cli._options import Method, Rows
from perpend.cli._summary import NOT_SURE
from perpend.exceptions import ClusterError

CHECKPOINT = "fit.checkpoint"  # in the folder of the results, until they are there
NOT_THE_RESULT = {"file", "memory_limit", "scheduler"}  # where and how, but not what


class Resumed:
    """The checkpoint of a command; `path` is None without one."""

    def __init__(self, path: Path | None, source: Path) -> None:
        if path is not None and path.resolve() == source.resolve():
            raise Refusal(f"{path}: is the input. Choose another --checkpoint.")
        self.path = path
        self.results: frozenset[str] = frozenset()
        """What an earlier process was about to put in place when it was killed."""
        if path is not None and path.exists():
            from perpend.rows.checkpoint import CheckpointFile

            self.results = CheckpointFile(path).results

    @contextmanager
    def fitting(self, *, quiet: bool) -> Iterator[None]:
        """Say that a fit goes on, and how to go on with it if it is interrupted."""
        path = self.path
        if path is None:
            yield
            return
        folder, is_new = path.parent, not path.parent.exists()
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists() and not quiet:
            complain(f"going on from {path}", label="")
        try:
            yield
        except (KeyboardInterrupt, ClusterError):
            if path.exists():
                complain(f"saved to {path}: run the same command again to go on", label="")
            raise
        finally:
            if is_new:
                with suppress(OSError):  # it is not empty
                    folder.rmdir()

    def note_results(self, names: list[str]) -> None:
        """Note what is about to be put in place."""
        if self.path is not None and self.path.exists():
            from perpend.rows.checkpoint import CheckpointFile

            CheckpointFile(self.path).note_results(names)

    def end(self) -> None:
        """Delete the checkpoint: all results are in place."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def stop_if_finished(
        self,
        folder: Path,
        source: Path,
        options: dict[str, Any],
        *,
        force: bool,
        json: bool,
        quiet: bool,
    ) -> None:
        """Leave the command where its results are in place already.

        They are if they were made by these options from this input, and none has changed. So a
        command that is killed at its very end may be run again like any other.
        """
        if force or self.path is None or self.path.exists() or not source.exists():
            return
        try:
            result = json_text.loads((folder / _output.RESULT).read_bytes())
            if result["options"] != options or result["perpend"] != __version__:
                return
            files = {source: result["input"]["sha256"]}
            files |= {folder / name: digest for name, digest in result["files"].items()}
            if any(_output.sha256(file) != digest for file, digest in files.items()):
                return
            code = 0 if result["sure"] else NOT_SURE
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return  # there is no result, or it is none of ours
        if not quiet:
            complain(f"{folder}: has the results of this command already", label="")
        if json:
            say_json(result)
        raise typer.Exit(code)


def options_of(given: Rows, how: Method, *, report: bool) -> dict[str, Any]:
    """Return the options that decide what comes out, as result.json has them."""
    all_: dict[str, Any] = plain({**asdict(given), **asdict(how), "report": report})
    return {name: value for name, value in all_.items() if name not in NOT_THE_RESULT}
