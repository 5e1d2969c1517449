"""``perpend fit FILE -o DIR``: find the subspace of the rows of a file."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perpend.cli import _input, _output
from perpend.cli import _options as options
from perpend.cli._console import finish, table
from perpend.cli._ids import remark_on_ids
from perpend.cli._memory import check_fit, limit
from perpend.cli._model import Wanted, build, check_codimension, check_threshold, fit_model
from perpend.cli._page import add_report
from perpend.cli._progress import monitor
from perpend.cli._summary import (
    Lines,
    estimate,
    exit_code,
    left_out,
    noise,
    seen,
    unsaid_doubts,
    which_affine,
)

if TYPE_CHECKING:
    from perpend.estimator import SubspaceEstimator
    from perpend.formats import Dataset


def fit(
    file: options.File,
    *,
    output: options.Output,
    method: options.Method = "DPCP",
    codimension: options.Codimension = "auto",
    n_components: options.NComponents = None,
    affine: options.AffineOption = None,
    starts: options.Starts = "auto",
    max_iter: options.MaxIter = "auto",
    threshold: options.Threshold = "auto",
    contamination: options.Contamination = None,
    no_normalize: Annotated[
        bool, typer.Option("--no-normalize", help="Keep the lengths of the rows.")
    ] = False,
    no_refine: Annotated[
        bool, typer.Option("--no-refine", help="Stop after the descent: the published algorithm.")
    ] = False,
    nan: options.NanOption = options.Nan.error,
    columns: options.Columns = None,
    variable: options.Variable = None,
    format: options.Format = None,  # noqa: A002  the option's name
    device: options.Device = None,
    memory_limit: options.MemoryLimit = None,
    seed: options.Seed = 0,
    no_report: Annotated[bool, typer.Option("--no-report", help="Make no report.html.")] = False,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the subspace of the rows of a file, and the outliers.

    Writes to DIR: report.html (open it in a browser), labels.csv (row from 0, distance, probability
    of being an outlier, inlier 1 or 0), the labels in the format of FILE, model.npz (for perpend
    apply and perpend.load), result.json (everything else) and report.json (what report.html is
    made from).
    """
    from perpend.cli._result import describe_fit

    wanted = Wanted(
        method,
        codimension,
        starts,
        threshold,
        contamination,
        affine,
        not no_normalize,
        not no_refine,
        device,
        seed,
        max_iter,
        n_components,
    )
    check_threshold(wanted)
    check_codimension(wanted)
    names = [_output.LABELS, _output.MODEL, _output.RESULT]
    names += [] if no_report else [_output.REPORT, _output.FACTS]
    _output.check_folder(output, file, names, force=force)
    clock = [time.perf_counter()]
    with monitor(quiet=quiet) as watch, _input.opened(file, format, limit(memory_limit)) as source:
        watch.phase(f"reading {source.name}")
        data = _input.without_gaps(_input.read(source, variable, columns), nan)
        _input.check_rows(data)
        wanted = wanted.about(data)
        check_fit(data, memory_limit, affine=wanted.affine is not options.Affine.no)
        clock.append(time.perf_counter())
        watch.phase("loading scikit-learn")
        model = build(wanted, watch)
        remarks = [] if columns else remark_on_ids(data)  # named columns are meant
        remarks += fit_model(model, data)
        remarks += unsaid_doubts(model, remarks)
        clock.append(time.perf_counter())
        watch.phase("writing the results")
        labelled = _output.label_rows(model, data, fitted=True)
        with _output.staging(output, source.path, data, labelled, force=force) as draft:
            _output.save_model(draft / _output.MODEL, model, data)
            result = describe_fit(model, data, source, remarks)
            result["timings"] = {"read": clock[1] - clock[0], "fit": clock[2] - clock[1]}
            if not no_report:
                remarks += add_report(draft, model, data, labelled, result, source)
            _output.write_result(draft, result)

    def summary() -> str:
        lines = _summary(model, data, source, output, result, given=affine)
        seconds = time.perf_counter() - clock[0]
        return table([*lines[:-1], ("time", f"{seconds:.1f} s"), lines[-1]])

    finish(remarks, result, summary, json=json, quiet=quiet)
    raise typer.Exit(exit_code(model))


def _summary(
    model: "SubspaceEstimator",
    data: "Dataset",
    source: _input.Source,
    folder: Path,
    result: dict[str, Any],
    *,
    given: options.Affine | None,
) -> Lines:
    records, features = _input.RECORDS[data.kind], _input.FEATURES[data.kind]
    has_report = _output.REPORT in result["files"]
    page = f"open {folder / _output.REPORT} in a browser"
    command = f"perpend apply {folder / _output.MODEL} NEW -o MORE"
    return [
        ("data", f"{source.name}: {_input.size(data)}, {data.X.dtype}"),
        *left_out(data),
        *estimate(model),
        ("affine", which_affine(model, data.kind, given)),
        *noise(model, features),
        *seen(model, records),
        _output.wrote(folder, result),
        ("next", page if has_report else command),
    ]
