"""The command line: one file for each command, thin.

Nothing here imports NumPy or scikit-learn before a command has parsed its arguments, so ``--help``
and errors in the arguments come at once. `EPILOG` has the exit codes.

An error is one line on stderr. With ``--json`` there is also an object on stdout:
``{"error": message, "exit_code": 3}``.
"""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer

from perpend import __version__
from perpend.cli._console import Refusal, bug_message, complain, say, say_json, worded
from perpend.cli._options import spread
from perpend.cli.apply import apply
from perpend.cli.compare import compare
from perpend.cli.demo import demo
from perpend.cli.doctor import doctor
from perpend.cli.fit import fit
from perpend.cli.inspect import inspect
from perpend.cli.report import report
from perpend.cli.reproduce import reproduce
from perpend.exceptions import (
    CheckpointError,
    ClusterError,
    InputError,
    MissingExtraError,
    ModelFileError,
    TooLargeError,
)

__all__ = ["app", "main"]

INTERRUPTED = 130

EPILOG = (
    "Exit codes: 0 done; 1 a bug (the message names a log file); 2 bad arguments, or would "
    "overwrite; 3 bad input; 4 not sure: results are written; 5 too little "
    "memory or disk, no permission, or a cluster is gone; 6 a package is missing; 130 interrupted."
)

# What to do about a problem of the operating system.
ADVICE = {
    **dict.fromkeys(
        [errno.EACCES, errno.EPERM, errno.EROFS], "Check the permissions, or choose another place."
    ),
    **dict.fromkeys([errno.ENOSPC, errno.EDQUOT], "Free some disk space, or choose another place."),
}

app = typer.Typer(
    name="perpend",
    epilog=EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, inspect, fit, apply, compare, report, reproduce, doctor):
    app.command()(spread(command))


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"perpend {__version__}")
        raise typer.Exit


@app.callback(no_args_is_help=True)
def _perpend(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Find the subspace your good rows lie on, its dimension, and the outliers."""


def main(
    args: Sequence[str] | None = None, *, program: typer.Typer = app, name: str = "perpend"
) -> int:
    """Run a command and return its exit code; errors become one line on stderr, and JSON if wanted.

    Parameters
    ----------
    args : list of str, optional
        What follows the word ``perpend``; by default, the arguments of this process.
    program, name : optional
        Another program than ``perpend``, such as ``python -m studies``, in the same manner.
    """
    try:
        code = program(args, prog_name=name, standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001  the last line of defence
        if os.environ.get("PERPEND_DEBUG") == "1":
            traceback.print_exc()
        code, message = _explain(error)
        complain(message, label="" if _is_help(error) else "error: ")
        # The arguments themselves are searched: a command line with errors has no parsed options.
        given = list(sys.argv[1:] if args is None else args)
        if "--json" in given[: given.index("--") if "--" in given else None]:
            with suppress(OSError):  # a full disk, for example: the exit code is about the first
                say_json({"error": worded(message), "exit_code": code})
        return code
    if code == INTERRUPTED:
        complain("interrupted", label="")
    return int(code)


def _is_help(error: Exception) -> bool:
    return type(error).__name__ == "NoArgsIsHelpError"


def _explain(error: Exception) -> tuple[int, str]:
    """Return the exit code and the message."""
    if hasattr(error, "format_message"):  # typer's own, whichever click it is built on
        return 2, _usage_message(error)
    if isinstance(error, Refusal):
        return 2, str(error)
    expected = InputError | ModelFileError | CheckpointError | MissingExtraError | ClusterError
    if isinstance(error, expected):
        codes = {MissingExtraError: 6, TooLargeError: 5, ClusterError: 5}
        return codes.get(type(error), 3), str(error)
    if isinstance(error, MemoryError):
        details = str(error) or "no details"
        return 5, f"not enough memory ({details}). Use fewer rows, or float32."
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        advice = ADVICE.get(error.errno or 0, "Check the disk space and the permissions.")
        return 5, f"{place}{error.strerror or error}. {advice}"
    return 1, bug_message(error)


def _usage_message(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    message: str = error.format_message()  # type: ignore[attr-defined]
    if _is_help(error):
        return message
    message = message.replace("Value error, ", "")  # pydantic's words, where typer uses it
    message = message if message.endswith((".", "?")) else f"{message}."
    return message + (f" See: {context.command_path} --help" if context else "")
