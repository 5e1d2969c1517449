"""The command line: one file for each command, thin.

Nothing here imports NumPy or scikit-learn before a command has understood its arguments, so
``--help`` and errors in the arguments come at once. Exit codes:

====  ==========================================================================
0     done
1     a bug in perpend; the message names a log file
2     the command cannot be understood, or would overwrite results
3     the input cannot be read or used
4     it ran, but is not sure of the answer or found no subspace; results are written
5     too little memory or disk space, or no permission to write
6     an optional package is missing
130   interrupted
====  ==========================================================================
"""

import errno
import os
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from perpend import __version__
from perpend.cli._console import Refusal, complain, say
from perpend.cli.apply import apply
from perpend.cli.compare import compare
from perpend.cli.demo import demo
from perpend.cli.doctor import doctor
from perpend.cli.fit import fit
from perpend.cli.inspect import inspect
from perpend.cli.report import report
from perpend.cli.reproduce import reproduce
from perpend.exceptions import InputError, MissingExtraError, ModelFileError, TooLargeError

__all__ = ["app", "main"]

INTERRUPTED = 130

app = typer.Typer(
    name="perpend",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, inspect, fit, apply, compare, report, reproduce, doctor):
    app.command()(command)


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


def main(args: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; errors become one line on stderr.

    Parameters
    ----------
    args : list of str, optional
        What follows the word ``perpend``; by default, the arguments of this process.
    """
    try:
        code = app(args, prog_name="perpend", standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001  the last line of defence
        if os.environ.get("PERPEND_DEBUG") == "1":
            traceback.print_exc()
        return _explain(error)
    if code == INTERRUPTED:
        complain("interrupted", label="")
    return int(code)


def _explain(error: Exception) -> int:
    """Say what went wrong, and return the exit code."""
    if hasattr(error, "format_message"):  # typer's own, whichever click it is built on
        return _explain_usage(error)
    if isinstance(error, Refusal):
        complain(str(error))
        return 2
    if isinstance(error, InputError | ModelFileError | MissingExtraError):
        complain(str(error))
        codes = {MissingExtraError: 6, TooLargeError: 5}
        return codes.get(type(error), 3)
    if isinstance(error, MemoryError):
        complain(f"not enough memory ({str(error) or 'no details'}). Use fewer rows, or float32.")
        return 5
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        complain(f"{place}{error.strerror or error}. {_advice(error.errno)}")
        return 5
    from perpend.cli._crash import bug_message

    complain(bug_message(error))
    return 1


def _advice(number: int | None) -> str:
    """What to do about a problem of the operating system."""
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "Check the permissions, or choose another place."
    if number in (errno.ENOSPC, errno.EDQUOT):
        return "Free some disk space, or choose another place."
    return "Check the disk space and the permissions."


def _explain_usage(error: Exception) -> int:
    context = getattr(error, "ctx", None)
    message = error.format_message()  # type: ignore[attr-defined]
    if type(error).__name__ == "NoArgsIsHelpError":
        complain(message, label="")
        return 2
    message = message.replace("Value error, ", "")  # pydantic's words, where typer uses it
    message = message if message.endswith((".", "?")) else f"{message}."
    complain(message + (f" See: {context.command_path} --help" if context else ""))
    return 2
