"""What the commands print: results on stdout, everything else on stderr, plain text in both."""

import json as json_text
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from perpend import __version__
from perpend._json import plain

# Messages of the library name parameters; on the command line these are options.
OPTIONS = {
    r"n_starts(?![.\w])": "--starts",
    r"max_iter(?![.\w])": "--max-iter",
    r"memory_limit(?![.\w])": "--memory-limit",
    **{f"{name}=": f"--{name}=" for name in ("variable", "exclude", "decimal", "thousands")},
    r"transpose(?![.\w])": "--transpose",
    r"skip_rows(?![.\w])": "--skip-rows",
    r"missing_values(?![.\w])": "--missing-value",
    r"make_pipeline\(perpend\.RobustStandardizer\(\), model\)\.fit\(X\)": "--standardize robust",
}
LONGEST_WORD = 400  # characters of a word, such as a path; longer ones lose their middle


class Refusal(Exception):  # noqa: N818
    """A valid command that is refused; the message says why and what to do."""


def say(text: str) -> None:
    """Print a result; a closed pipe (``| head -1``) is no error."""
    _print(text, sys.stdout)


def say_json(result: Any) -> None:
    """Print a result as strict JSON, in ASCII."""
    text = json_text.dumps(plain(result), indent=2, allow_nan=False)
    say(text.replace("\x7f", r"\u007f"))  # the only unprintable character that JSON leaves as it is


def complain(message: str, *, label: str = "error: ", as_list: bool = False, of: str = "") -> None:
    """Print an error or a remark on stderr, with a label on one line unless it is a list."""
    _print(label + worded(message, one_line=bool(label) and not as_list, of=of), sys.stderr)


def worded(message: str, *, one_line: bool = True, of: str = "") -> str:
    r"""Return a message for the terminal: options by their names, long words cut, no control codes.

    >>> print(worded("max_iter is too small for \x1b[31m.csv"))
    --max-iter is too small for \x1b[31m.csv
    """
    message = re.sub(r"\s*\n\s*", " ", message.strip()) if one_line else message
    message = re.sub(rf"\S{{{LONGEST_WORD},}}", lambda m: f"{m[0][:100]}...{m[0][-100:]}", message)
    for name, option in OPTIONS.items():
        message = re.sub(rf"(?<![\w/.-]){name}", option + (f" of {of}" if of else ""), message)
    return _printable(message)


def warn(message: str, *, of: str = "") -> None:
    """Print a warning on stderr; `of` names the command that has the options in it."""
    complain(message, label="warning: ", of=of)


def bug_message(error: BaseException) -> str:
    """Say that this is a bug, in which file the traceback is, and what to do with it."""
    import platform
    import tempfile
    import traceback
    from datetime import UTC, datetime

    where = "PERPEND_DEBUG=1 shows the details"
    lines = [
        f"perpend {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
        f"arguments: {sys.argv[1:]!r}\n",
        "".join(traceback.format_exception(error)),
    ]
    try:
        handle, path = tempfile.mkstemp(prefix="perpend-error-", suffix=".log")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n".join(lines))
        where = f"The details are in {path}"
    except OSError:
        pass
    return (
        f"{type(error).__name__}: {error}. This looks like a bug in perpend. {where}; please send "
        "them with your command to the developers."
    )


def finish(
    result: Any,
    summary: Callable[[], str],
    *,
    remarks: Sequence[str] = (),
    json: bool,
    quiet: bool = False,
) -> None:
    """Print the warnings of a command, and its result as JSON or as a summary."""
    for remark in () if quiet else remarks:
        warn(remark)
    if json:
        say_json(result)
    elif not quiet:
        say(summary())


def page(name: str, facts: Mapping[str, Any]) -> str:
    """Fill in the template of a summary."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from perpend._verdict import confidence
    from perpend.formats._checks import in_bytes, listed

    made = Environment(
        loader=PackageLoader("perpend.cli"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        autoescape=False,  # plain text
    )
    made.filters |= {
        "confidence": confidence,
        "count": count,
        "bytes": in_bytes,
        "listed": listed,
        "quoted": lambda name: f'"{name}"',
    }
    return made.get_template(f"{name}.txt").render(facts).rstrip()


def count(n: int) -> str:
    """Group the digits of a number.

    >>> count(12500)
    '12 500'
    """
    return f"{n:,}".replace(",", " ")


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def _print(text: str, stream: TextIO | None) -> None:
    if stream is None:  # closed before Python started (``>&-``)
        return
    encoding = stream.encoding or "utf-8"
    shown = _printable(text).encode(encoding, errors="backslashreplace").decode(encoding)
    try:
        print(shown, file=stream, flush=True)
    except BrokenPipeError:
        # Python flushes once more at exit; that must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
