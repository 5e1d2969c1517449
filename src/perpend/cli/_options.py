"""Arguments and options that several commands share, and how a shell completes them."""

import math
from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from perpend import _METHODS
from perpend.formats import FORMATS

METHODS = tuple(_METHODS)
"""Names of the methods; the registry itself needs scikit-learn."""

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class Affine(StrEnum):
    """Whether the subspace may miss the origin."""

    no = "no"
    yes = "yes"
    auto = "auto"

    @property
    def value_for_methods(self) -> bool | str:
        """The parameter `affine` of a method."""
        return {"no": False, "yes": True}.get(self.value, "auto")


AFFINE = {"table": Affine.auto, "image": Affine.yes, "cloud": Affine.yes}
"""The default for each kind of data: planes in scans and offsets in scenes are the rule, tables may
be either."""


class Nan(StrEnum):
    """What to do with missing values."""

    error = "error"
    drop_rows = "drop-rows"
    drop_cols = "drop-cols"


# -- values ----------------------------------------------------------------------------------------


def _whole_number(text: str, minimum: int) -> int | str:
    if text == "auto":
        return text
    try:
        value = int(text)
    except ValueError:
        value = minimum - 1
    if value < minimum:
        raise typer.BadParameter(f"{text!r} is neither auto nor a whole number >= {minimum}.")
    return value


_codimension = partial(_whole_number, minimum=0)
_starts = partial(_whole_number, minimum=1)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _threshold(text: str) -> float | str:
    if text == "auto":
        return text
    value = _number(text)
    if not 0 <= value < math.inf:
        raise typer.BadParameter(f"{text!r} is neither auto nor a number >= 0.")
    return value


def _contamination(text: str) -> float:
    value = _number(text)
    if not 0 <= value < 1:
        raise typer.BadParameter(f"{text!r} is not a share of outliers from 0 to 1, such as 0.3.")
    return value


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise typer.BadParameter(f"{text!r} has an empty name. Write names with commas between.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise typer.BadParameter(f"{twice!r} is named twice.")
    return names


def _memory(text: str) -> int | None:
    """Return bytes; None for a limit that follows the free memory."""
    if text == "auto":
        return None
    digits = text.upper().removesuffix("B").rstrip("KMGT").strip()
    unit = text.upper().removesuffix("B")[len(digits) :].strip()
    value = _number(digits) * UNITS.get(unit, math.nan)
    if not 0 < value < math.inf:
        raise typer.BadParameter(f"{text!r} is neither auto nor a size such as 500MB or 4GB.")
    return int(value)


def method_name(text: str) -> str:
    """Return the name of a method's class; case and dashes do not matter.

    >>> method_name("dpcp-irls")
    'DPCPIRLS'
    """
    wanted = _letters(text)
    for name in METHODS:
        if _letters(name) == wanted:
            return name
    raise typer.BadParameter(f"there is no method {text!r}. Known methods: {', '.join(METHODS)}.")


def _letters(text: str) -> str:
    return text.replace("-", "").replace("_", "").casefold()


def _format(text: str) -> str:
    names = [known.name for known in FORMATS]
    if text.casefold() in names:
        return text.casefold()
    raise typer.BadParameter(f"there is no format {text!r}. Known formats: {', '.join(names)}.")


# -- completion ------------------------------------------------------------------------------------


def complete_method(incomplete: str) -> list[str]:
    """Names of methods that begin like this."""
    return [name for name in METHODS if _letters(name).startswith(_letters(incomplete))]


def complete_format(incomplete: str) -> list[str]:
    """Names of formats that begin like this."""
    return [known.name for known in FORMATS if known.name.startswith(incomplete.casefold())]


def complete_path(incomplete: str) -> list[str]:
    """Files and folders that begin like this; hidden ones only after a dot."""
    at = incomplete.rfind("/") + 1
    folder, start = incomplete[:at], incomplete[at:]
    try:
        entries: Iterable[Path] = sorted(Path(folder or ".").iterdir())
    except OSError:
        return []
    return [
        f"{folder}{entry.name}{'/' if entry.is_dir() else ''}"
        for entry in entries
        if entry.name.startswith(start) and (start or not entry.name.startswith("."))
    ]


# -- what the commands use -------------------------------------------------------------------------

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Table, image or point cloud; - reads standard input, as CSV without --format.",
        autocompletion=complete_path,
        readable=False,  # the readers say what is wrong with a file, with the exit code for it
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder for the results.",
        autocompletion=complete_path,
    ),
]
Method = Annotated[
    Any,
    typer.Option(
        parser=method_name,
        metavar="NAME",
        help=f"Method: {', '.join(METHODS)}. All but DPCP need --codimension.",
        autocompletion=complete_method,
    ),
]
Codimension = Annotated[
    Any,
    typer.Option(
        parser=_codimension, metavar="auto|C", help="Number of columns minus the dimension."
    ),
]
NComponents = Annotated[
    int | None,
    typer.Option(metavar="D", min=0, help="The dimension, instead of --codimension."),
]
Starts = Annotated[
    Any, typer.Option(parser=_starts, metavar="auto|K", help="Number of random starts, for DPCP.")
]
MaxIter = Annotated[
    Any,
    typer.Option(
        "--max-iter",
        parser=_starts,
        metavar="auto|N",
        help="Most iterations; auto: the method's default.",
    ),
]
Threshold = Annotated[
    Any,
    typer.Option(
        parser=_threshold, metavar="auto|V", help="Distance above which a row is an outlier."
    ),
]
Contamination = Annotated[
    Any,
    typer.Option(
        parser=_contamination,
        metavar="SHARE",
        help="Share of outliers, if you know it; sets the threshold.",
    ),
]
AffineOption = Annotated[
    Affine | None,
    typer.Option(
        "--affine",
        help="Whether the subspace may miss the origin; auto: decided from the data. The default "
        "is auto for tables and arrays, and yes for point clouds and images.",
        show_default=False,
    ),
]
NanOption = Annotated[
    Nan, typer.Option("--nan", help="What to do with missing, NaN or infinite values.")
]
Variable = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which array, if the file holds several.")
]
Columns = Annotated[
    Any,
    typer.Option(
        parser=_columns,
        metavar="A,B,C",
        help="Only these columns, bands or fields: names, or numbers from 1 without names.",
    ),
]
Format = Annotated[
    Any,
    typer.Option(
        "--format",
        parser=_format,
        metavar="NAME",
        help="Format of the file, instead of by its suffix.",
        autocompletion=complete_format,
    ),
]
Device = Annotated[
    str | None, typer.Option(metavar="NAME", help="Where to compute, such as cuda; needs torch.")
]
MemoryLimit = Annotated[
    Any,
    typer.Option(
        parser=_memory,
        metavar="auto|SIZE",
        help="Refuse data that needs more, such as 4GB; auto: 80 % of the free memory.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(metavar="N", min=0, max=2**32 - 1, help="The same seed gives the same result."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace results that exist.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of a summary, also of an error.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
