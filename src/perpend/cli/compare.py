"""``perpend compare FILE``: all methods and PCA on the same rows, side by side."""

import shlex
import time
from typing import TYPE_CHECKING, Any

import typer

from perpend.cli import _input
from perpend.cli import _options as options
from perpend.cli._comparison import Row, compared, pca
from perpend.cli._console import grid, say, say_json, table, warn
from perpend.cli._memory import check_fit, limit
from perpend.cli._model import Wanted, build, fit_model, needs_codimension
from perpend.cli._options import METHODS
from perpend.cli._progress import monitor
from perpend.cli._summary import NOT_SURE, exit_code, left_out
from perpend.exceptions import PerpendError

if TYPE_CHECKING:
    from perpend._progress import Monitor
    from perpend.formats import Dataset

SCHEMA = 1


def compare(
    file: options.File,
    *,
    codimension: options.Codimension = "auto",
    affine: options.AffineOption = None,
    nan: options.NanOption = options.Nan.error,
    columns: options.Columns = None,
    variable: options.Variable = None,
    format: options.Format = None,  # noqa: A002  the option's name
    device: options.Device = None,
    memory_limit: options.MemoryLimit = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Run all methods and PCA on the same rows, side by side.

    Methods that need the codimension get the one that DPCP found. So does PCA, which labels the
    same number of outliers. A method that fails is shown with the reason, and the others go on.
    Nothing is written.
    """
    began = time.perf_counter()
    with (
        monitor() as watch,
        _input.opened(file, format, limit(memory_limit)) as source,
    ):
        watch.phase(f"reading {source.name}")
        data = _input.without_gaps(_input.read(source, variable, columns), nan)
        _input.check_rows(data)
        wanted = Wanted(METHODS[0], codimension, affine=affine, device=device, seed=seed)
        filled = wanted.about(data)
        check_fit(data, memory_limit, affine=filled.affine is not options.Affine.no)
        rows = _run(filled, data, watch)
    compared(rows)
    if json:
        say_json(_described(rows, data, source, seed))
    else:
        for row in rows:
            for remark in row.warnings:
                # There is no --max-iter and no --starts here.
                warn(f"{row.method}: {remark}", of="perpend fit")
        given = _given(wanted, nan, columns, variable, format)
        say(_page(rows, data, source, time.perf_counter() - began, given))
    first = rows[0]
    raise typer.Exit(exit_code(first.model) if first.model is not None else NOT_SURE)


def _run(wanted: Wanted, data: "Dataset", watch: "Monitor") -> list[Row]:
    """Fit one method after the other; if one fails, the others go on."""
    watch.phase("loading scikit-learn")
    rows = []
    codimension = wanted.codimension
    for done, name in enumerate(METHODS):
        watch.part(name, done, len(METHODS) + 1)
        row = Row(name, given=wanted.codimension != "auto")
        if codimension == "auto" and needs_codimension(name):
            row.problem = f"not run: it needs the codimension, and {METHODS[0]} found none"
        elif codimension == 0 and needs_codimension(name):
            row.problem = f"not run: {METHODS[0]} found codimension 0, so there is no subspace"
        else:
            row.given = row.given or needs_codimension(name)
            _fit(row, wanted._replace(method=name, codimension=codimension), data)
            if row.model is not None and codimension == "auto":
                codimension = row.model.codimension_
        rows.append(row)
    watch.part("PCA", len(METHODS), len(METHODS) + 1)
    rows.append(pca(rows[0], data))
    failures = [row.error for row in rows if row.error is not None]
    if failures and all(row.problem for row in rows):
        raise failures[0]
    return rows


def _fit(row: Row, wanted: Wanted, data: "Dataset") -> None:
    began = time.perf_counter()
    try:
        model = build(wanted, None)
        row.warnings = fit_model(model, data)
        row.distance = -model.score_samples(data.X)
        row.model, row.labels, row.normals = model, model.labels_, model.normals_
    except Exception as error:  # noqa: BLE001  the others go on
        row.error = error
        row.problem = _reason(error, data)
    row.seconds = time.perf_counter() - began


def _reason(error: Exception, data: "Dataset") -> str:
    text = str(error).removeprefix(f"{data.source}: ") or "no details"
    if isinstance(error, PerpendError):
        return f"failed: {text}"
    if isinstance(error, MemoryError):
        return f"failed: not enough memory ({text})"
    return f"failed: {type(error).__name__}: {text}"


def _described(
    rows: list[Row], data: "Dataset", source: _input.Source, seed: int
) -> dict[str, Any]:
    from perpend.cli._result import describe_input, preamble

    return {
        **preamble("compare", SCHEMA),
        "seed": seed,
        "input": describe_input(data, source),
        "methods": [row.described() for row in rows],
    }


def _given(
    wanted: Wanted,
    nan: options.Nan,
    columns: tuple[str, ...] | None,
    variable: str | None,
    format: str | None,  # noqa: A002  the option's name
) -> str:
    """Return the options that were given, as ``perpend fit`` takes them."""
    values = {
        "--codimension": (wanted.codimension, "auto"),
        "--affine": (wanted.affine, None),
        "--nan": (nan.value, options.Nan.error.value),
        "--columns": (",".join(columns) if columns else None, None),
        "--variable": (variable, None),
        "--format": (format, None),
        "--device": (wanted.device, None),
        "--seed": (wanted.seed, 0),
    }
    return "".join(
        f" {option} {shlex.quote(str(value))}"
        for option, (value, default) in values.items()
        if value != default
    )


def _page(
    rows: list[Row], data: "Dataset", source: _input.Source, seconds: float, given: str
) -> str:
    first = rows[0].method
    heads = ["method", "codimension", "confidence", "outliers", "noise", "time"]
    heads += [f"labels as {first}", f"angle to {first}"]
    lines = [("data", f"{source.name}: {_input.size(data)}"), *left_out(data)]
    notes = [
        ("given", f"the codimension, by you or by {first}; PCA labels as many outliers as {first}"),
        ("angle", "the largest between the two subspaces, in degrees; 0: they are the same"),
        ("time", f"{seconds:.1f} s"),
        ("next", f"perpend fit {'-' if source.is_stdin else source.name} -o RESULTS{given}"),
    ]
    return "\n\n".join([table(lines), grid(heads, [row.cells() for row in rows]), table(notes)])
