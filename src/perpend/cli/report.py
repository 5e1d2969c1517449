"""``perpend report DIR``: make report.html again from a folder of results."""

from pathlib import Path
from typing import Annotated

from perpend.cli import _options as options
from perpend.cli import _output
from perpend.cli._console import Refusal, say
from perpend.cli._progress import monitor
from perpend.cli._summary import collected_warnings
from perpend.exceptions import InputError


def report(
    folder: Annotated[
        Path, options.path_argument(metavar="DIR", help="A folder that perpend fit wrote.")
    ],
    *,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Make report.html again from a folder of results.

    It needs what perpend fit wrote: report.json, or model.npz and the files beside it.
    """
    if not folder.exists():
        raise InputError(f"{folder}: no such folder. Check the name.")
    if not folder.is_dir():
        raise InputError(f"{folder}: is a file. Give the folder that perpend fit wrote.")
    if not any((folder / name).is_file() for name in (_output.FACTS, _output.MODEL)):
        raise InputError(
            f"{folder}: has neither {_output.FACTS} nor {_output.MODEL}. Give a folder that "
            f"perpend fit wrote, or run it: perpend fit FILE -o {folder}"
        )
    if (folder / _output.REPORT).exists() and not force:
        raise Refusal(f"{folder}: already has {_output.REPORT}. Use --force to replace it.")
    with monitor(quiet=quiet) as watch, collected_warnings():
        watch.phase("making the report")
        from perpend.report import report_from_folder

        path = report_from_folder(folder)
    if not quiet:
        say(f"wrote       {path}")
