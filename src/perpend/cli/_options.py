"""Arguments and options that several commands share, and how a shell completes them.

A record here has an option for each of its fields. `spread` gives a command whose parameters are
such records all of their options, so that each is declared once, and comes to where it is used.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from perpend import _LABELS_ONLY, _METHODS
from perpend.formats import FORMATS

METHODS = tuple(_METHODS)
"""Names of the methods; the registry itself needs scikit-learn."""

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
UNITS |= {f"{name}I": 2 ** (10 * power) for power, name in enumerate("KMGT", 1)}


class Affine(StrEnum):
    """Whether the subspace may miss the origin."""

    no = "no"
    yes = "yes"
    auto = "auto"


AFFINE = {"table": Affine.auto, "image": Affine.yes, "cloud": Affine.yes}
"""The default for each kind of data: planes in scans and offsets in scenes are the rule, tables may
be either. Standardised ones are centred, so that nothing is special about their origin."""
OUTLIERS = {"table": "across", "image": "both", "cloud": "across"}
"""Likewise which outliers count: spectra have no clear dimension, so a scene's score needs none."""


class Standardize(StrEnum):
    """How columns are brought to comparable units."""

    robust = "robust"
    none = "none"


STANDARDIZED = {"csv", "tsv", "txt", "parquet", "arrow"}
"""Formats of tables whose columns are quantities of their own. Arrays, scans and scenes have one
unit for all columns, or were prepared by whoever saved them."""


class Nan(StrEnum):
    """What to do with missing values."""

    error = "error"
    mask = "mask"
    drop_rows = "drop-rows"
    drop_cols = "drop-cols"


def spread(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with an option for each field of the records that the function takes."""
    own = inspect.signature(function).parameters
    records: dict[str, Any] = {
        name: one.annotation for name, one in own.items() if is_dataclass(one.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for name, one in own.items():
        of_record = inspect.signature(records[name]).parameters if name in records else {}
        parameters += of_record.values() or [one]

    @wraps(function)
    def command(**values: Any) -> None:
        for name, record in records.items():
            values[name] = record(**{one.name: values.pop(one.name) for one in fields(record)})
        function(**values)

    ordered = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    command.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    return command


# -- values ----------------------------------------------------------------------------------------


def _number(
    text: str,
    *,
    kind: type = float,
    least: float = 0,
    below: float = math.inf,
    auto: bool = True,
    wrong: str,
) -> Any:
    """Return "auto", or a number in a range; `wrong` completes the sentence about anything else."""
    if auto and text == "auto":
        return text
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not least <= value < below:
        raise BadParameter(f"{text!r} is {wrong}.")
    return value


_codimension = partial(_number, kind=int, wrong="neither auto nor a whole number >= 0")
_positive = partial(_number, kind=int, least=1, wrong="neither auto nor a whole number >= 1")
_threshold = partial(_number, wrong="neither auto nor a number >= 0")
_share = partial(
    _number, below=1, auto=False, wrong="not a share of outliers from 0 to 1, such as 0.3"
)


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise BadParameter(f"{text!r} has an empty name. Write names with commas between.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadParameter(f"{twice!r} is named twice.")
    return names


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError as error:
        raise BadParameter(f"{text!r} is not a number, or several with commas between.") from error


def _memory(text: str) -> int | None:
    """Return bytes; None for the default."""
    if text == "auto":
        return None
    size = text.upper().removesuffix("B")
    digits = size.rstrip("KMGTI").strip()
    try:
        value = float(digits) * UNITS[size[len(digits) :].strip()]
    except (ValueError, KeyError):
        value = math.nan
    if not 0 < value < math.inf:
        raise BadParameter(f"{text!r} is neither auto nor a size such as 500MB or 4GB.")
    return int(value)


def _known(text: str, *, names: Sequence[str], what: str) -> str:
    """Return one of some names; case and dashes do not matter."""
    for name in names:
        if _letters(name) == _letters(text):
            return name
    raise BadParameter(f"there is no {what} {text!r}. Known {what}s: {', '.join(names)}.")


def known_method(text: str) -> str:
    """Return the name of a method that finds a subspace."""
    name = _known(text, names=(*METHODS, *_LABELS_ONLY), what="method")
    if name in _LABELS_ONLY:
        raise BadParameter(f"{name} labels rows and finds no subspace; perpend compare has it.")
    return name


def known_methods(text: str) -> tuple[str, ...]:
    """Return names of methods to be compared, with commas between."""
    names = (*METHODS, *_LABELS_ONLY, "PCA")
    return tuple(_known(name, names=names, what="method") for name in _columns(text))


def _letters(text: str) -> str:
    return text.replace("-", "").replace("_", "").casefold()


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
        entries = sorted(Path(folder or ".").iterdir())
    except OSError:
        return []
    return [
        f"{folder}{entry.name}{'/' if entry.is_dir() else ''}"
        for entry in entries
        if entry.name.startswith(start) and (start or not entry.name.startswith("."))
    ]


# -- what the commands use -------------------------------------------------------------------------

# The readers say what is wrong with a file, with the exit code for it, so typer does not check it.
path_argument = partial(Argument, autocompletion=complete_path, readable=False)


def option(metavar: str, about: str, parser: Callable[..., Any] | None = None, **more: Any) -> Any:
    """Return an option that has a value."""
    return Option(metavar=metavar, help=about, parser=parser, **more)


Output = Annotated[
    Path,
    Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Folder for the results.",
        autocompletion=complete_path,
    ),
]
Threshold = Annotated[
    Any, option("auto|V", "Distance above which a row is an outlier.", _threshold)
]
Force = Annotated[bool, Option("--force", help="Replace results that exist.")]
Json = Annotated[bool, Option("--json", help="Print JSON instead of a summary, also of an error.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print nothing but errors.")]


@dataclass(eq=False, repr=False)
class Input:
    """A file, and what of it to read."""

    file: Annotated[
        Path,
        path_argument(
            metavar="FILE",
            help="Table, image or point cloud; - reads standard input, as CSV without --format.",
        ),
    ]
    columns: Annotated[
        Any,
        option(
            "A,B,C",
            "Only these columns, bands or fields: names, numbers from 1, or ranges such as 1-40.",
            _columns,
        ),
    ] = None
    exclude: Annotated[Any, option("A,B,C", "All but these, in the same way.", _columns)] = None
    decimal: Annotated[str, option(".|,", "Decimal mark of numbers in text tables.")] = "."
    thousands: Annotated[
        str | None, option("SIGN", "What separates thousands in text tables, such as a comma.")
    ] = None
    transpose: Annotated[
        bool, Option("--transpose", help="Points are the columns of the table, not its rows.")
    ] = False
    skip_rows: Annotated[
        int | None,
        Option(
            metavar="N",
            min=0,
            help="Lines of a text above its table; by default found by their length.",
            show_default=False,
        ),
    ] = None
    missing_values: Annotated[
        Any,
        Option(
            "--missing-value",
            metavar="A,B,C",
            parser=_numbers,
            help="Numbers in a text table that stand for a missing value, such as -999.",
        ),
    ] = None
    variable: Annotated[str | None, option("NAME", "Which array, if the file holds several.")] = (
        None
    )
    format: Annotated[
        Any,
        option(
            "NAME",
            "Format of the file, instead of by its suffix.",
            partial(_known, names=[known.name for known in FORMATS], what="format"),
            autocompletion=complete_format,
        ),
    ] = None


@dataclass(eq=False, repr=False)
class Rows(Input):
    """A file whose rows are used: without gaps, and block by block if it is large."""

    nan: Annotated[
        Nan,
        Option(
            "--nan",
            "--missing",
            help="What to do with missing, NaN or infinite values; mask: use the other "
            "values of such rows.",
        ),
    ] = Nan.error
    memory_limit: Annotated[
        Any,
        option(
            "auto|SIZE",
            "Memory for the rows, such as 4GB; larger files are read block by block. auto: 1 GiB.",
            _memory,
        ),
    ] = None


@dataclass(eq=False, repr=False)
class Search:
    """What every method needs to know."""

    codimension: Annotated[
        Any, option("auto|C", "Number of columns minus the dimension.", _codimension)
    ] = "auto"
    affine: Annotated[
        Affine | None,
        Option(
            help="Whether the subspace may miss the origin; auto: decided from the data. The "
            "default is yes for standardised tables, point clouds and images, and auto for others.",
            show_default=False,
        ),
    ] = None
    standardize: Annotated[
        Standardize | None,
        Option(
            help="robust: divide columns by their quartiles first, so that units do not matter. "
            "The default is robust for tables (CSV, text, Parquet, Arrow), and none for arrays, "
            "point clouds and images.",
            show_default=False,
        ),
    ] = None
    device: Annotated[
        str | None, option("NAME", "Where to compute, such as cuda; needs torch.")
    ] = None
    seed: Annotated[
        int, option("N", "The same seed gives the same result.", min=0, max=2**32 - 1)
    ] = 0


@dataclass(eq=False, repr=False)
class Method(Search):
    """A method with all of its settings."""

    method: Annotated[
        Any,
        option(
            "NAME",
            f"Method: {', '.join(METHODS)}. Most need --codimension.",
            known_method,
            autocompletion=complete_method,
        ),
    ] = METHODS[0]
    n_components: Annotated[
        int | None, option("D", "The dimension, instead of --codimension.", min=0)
    ] = None
    starts: Annotated[Any, option("auto|K", "Number of random starts, for DPCP.", _positive)] = (
        "auto"
    )
    max_iter: Annotated[
        Any, option("auto|N", "Most iterations; auto: the method's default.", _positive)
    ] = "auto"
    outliers: Annotated[
        Any,
        option(
            "across|both",
            "across: rows off the subspace; both: also rows far out within it, the default for "
            "images. Use both to find outliers of any kind in a table.",
            partial(_known, names=("across", "both"), what="choice"),
        ),
    ] = None
    threshold: Threshold = "auto"
    contamination: Annotated[
        Any, option("SHARE", "Share of outliers, if you know it; sets the threshold.", _share)
    ] = None
    no_normalize: Annotated[
        bool, Option("--no-normalize", help="Keep the lengths of the rows.")
    ] = False
    no_refine: Annotated[
        bool, Option("--no-refine", help="Stop after the descent: the published algorithm.")
    ] = False
    scheduler: Annotated[
        str | None, option("ADDRESS", "Fit on the workers of this Dask scheduler.")
    ] = None
