"""A bug in perpend becomes one line and a log file, never a traceback on the screen."""

import os
import platform
import sys
import tempfile
import traceback
from datetime import UTC, datetime

from perpend import __version__


def keep_log(error: BaseException) -> str:
    """Write the traceback to a file in the temporary folder and return its path; "" if it fails."""
    text = "\n".join(
        [
            f"perpend {__version__}, Python {platform.python_version()}, {platform.platform()}",
            f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
            f"arguments: {sys.argv[1:]!r}",
            "",
            "".join(traceback.format_exception(error)),
        ]
    )
    try:
        handle, path = tempfile.mkstemp(prefix="perpend-error-", suffix=".log")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return ""
    return path


def bug_message(error: BaseException) -> str:
    """Say that this is a bug, where the details are, and what to do with them."""
    path = keep_log(error)
    where = f"The details are in {path}" if path else "PERPEND_DEBUG=1 shows the details"
    return (
        f"{type(error).__name__}: {error}. This looks like a bug in perpend. {where}; please send "
        "them with your command to the developers."
    )
