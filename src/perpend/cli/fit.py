"""``perpend fit FILE -o DIR``: find the subspace of the rows of a file."""

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perpend.cli import _output
from perpend.cli._console import count, say, table, warn
from perpend.cli._progress import monitor
from perpend.cli._summary import Lines, answer, collected_warnings, exit_code
from perpend.exceptions import InputError
from perpend.formats._registry import BY_SUFFIX

if TYPE_CHECKING:
    from perpend.estimator import SubspaceEstimator
    from perpend.formats import Dataset


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


def _codimension(text: str) -> int | str:
    return _whole_number(text, 0)


def _starts(text: str) -> int | str:
    return _whole_number(text, 1)


def _threshold(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise typer.BadParameter(f"{text!r} is neither auto nor a number >= 0.")
    return value


def fit(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help=f"A table, an image or a point cloud: {' '.join(BY_SUFFIX)}"
        ),
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for the results.")
    ],
    codimension: Annotated[
        Any,
        typer.Option(parser=_codimension, metavar="auto|C", help="Columns minus dimension."),
    ] = "auto",
    starts: Annotated[
        Any, typer.Option(parser=_starts, metavar="auto|K", help="Number of random starts.")
    ] = "auto",
    threshold: Annotated[
        Any,
        typer.Option(
            parser=_threshold, metavar="auto|V", help="Distance above which a row is an outlier."
        ),
    ] = "auto",
    no_normalize: Annotated[
        bool, typer.Option("--no-normalize", help="Keep the lengths of the rows.")
    ] = False,
    no_refine: Annotated[
        bool, typer.Option("--no-refine", help="Stop after the descent: the published algorithm.")
    ] = False,
    variable: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which array of a file that holds several.")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=2**32 - 1, help="The same seed gives the same result."
        ),
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace results that exist.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print result.json instead of a summary.")
    ] = False,
) -> None:
    """Find the subspace of the rows of a file, and the outliers.

    Writes to DIR: labels.csv (row from 0, distance, inlier 1 or 0), model.npz (for perpend.load)
    and result.json (everything else).
    """
    _output.check_folder(output, file, force=force)
    clock = [time.perf_counter()]
    with monitor() as watch:
        watch.phase(f"reading {file.name}")
        data = _read(file, variable)
        clock.append(time.perf_counter())
        watch.phase("loading scikit-learn")
        from perpend import DPCP

        model = DPCP(
            codimension,
            n_starts=starts,
            threshold=threshold,
            normalize=not no_normalize,
            refine=False if no_refine else "auto",
            random_state=seed,
            callback=watch,
        )
        remarks = _fit(model, data)
        clock.append(time.perf_counter())
        watch.phase("writing the results")
        result = _output.describe(model, data, remarks)
        result["timings"] = {"read": clock[1] - clock[0], "fit": clock[2] - clock[1]}
        _output.write_results(output, model, data.X, result)
    for remark in remarks:
        warn(remark)
    if json:
        say(_output.as_json(result))
    else:
        say(table(_summary(model, data, output, time.perf_counter() - clock[0])))
    raise typer.Exit(exit_code(model))


def _read(file: Path, variable: str | None) -> "Dataset":
    """Read the file, and refuse what no method could use, by the names of its columns."""
    import numpy as np

    from perpend.formats import read

    data = read(file, variable=variable)
    if len(data.X) < 2:
        raise InputError(f"{file}: has only one row. Give at least 2, better many more.")
    bad = ~np.isfinite(data.X)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        name = f'"{data.columns[column]}"' if data.columns else column + 1
        raise InputError(
            f"{file}: {count(int(bad.sum()))} values in {count(int(bad.any(axis=1).sum()))} rows "
            f"are missing, NaN or infinite (the first, counting from 1: row {row + 1}, column "
            f"{name}). Remove these rows or columns, or fill the gaps first."
        )
    return data


def _fit(model: "SubspaceEstimator", data: "Dataset") -> list[str]:
    """Fit, and return the warnings; errors name the file."""
    from numpy.linalg import LinAlgError

    try:
        with collected_warnings() as remarks:
            model.fit(data.X)
    except LinAlgError:  # a ValueError, but no fault of the input
        raise
    except ValueError as error:
        raise InputError(f"{data.source}: {error}") from error
    return remarks


def _summary(model: "SubspaceEstimator", data: "Dataset", folder: Path, seconds: float) -> Lines:
    n, D = data.X.shape
    noise = [("noise", f"{model.noise_:.2g}")] if model.noise_ > 0 else []
    return [
        ("data", f"{data.source}: {count(n)} rows x {count(D)} columns, {data.X.dtype}"),
        *answer(model),
        *noise,
        ("wrote", "  ".join([str(folder / _output.LABELS), _output.MODEL, _output.RESULT])),
        ("time", f"{seconds:.1f} s"),
        ("next", f'in Python: perpend.load("{folder / _output.MODEL}").predict(X)'),
    ]
