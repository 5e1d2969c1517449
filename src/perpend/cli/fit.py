"""``perpend fit FILE -o DIR``: find the subspace of the rows of a file."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perpend.cli import _input, _output
from perpend.cli import _options as options
from perpend.cli._console import count, say, say_json, table, warn
from perpend.cli._ids import remark_on_ids
from perpend.cli._memory import check_fit, limit
from perpend.cli._model import Wanted, build, check_codimension, check_threshold, fit_model
from perpend.cli._page import add_report
from perpend.cli._progress import monitor
from perpend.cli._summary import (
    Lines,
    answer,
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
    of being an outlier, inlier 1 or 0), an answer in the format of FILE, model.npz (for perpend
    apply and perpend.load), result.json (everything else) and report.json (what the page is drawn
    from).
    """
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
        data = _input.read(source, options.Reading(variable, columns, format, nan))
        _input.check_rows(data)
        wanted = wanted.about(data)
        check_fit(data, memory_limit, affine=wanted.affine is not options.Affine.no)
        clock.append(time.perf_counter())
        watch.phase("loading scikit-learn")
        model = build(wanted, watch)
        remarks = [] if columns else remark_on_ids(data)  # whoever names columns wants them
        remarks += fit_model(model, data)
        remarks += unsaid_doubts(model, remarks)
        clock.append(time.perf_counter())
        watch.phase("writing the results")
        result = _write(
            output,
            model,
            data,
            source,
            remarks=remarks,
            clock=clock,
            with_report=not no_report,
            force=force,
        )
    if not quiet:
        for remark in remarks:
            warn(remark)
    if json:
        say_json(result)
    elif not quiet:
        seconds = time.perf_counter() - clock[0]
        lines = _summary(model, data, source, output, list(result["files"]), given=affine)
        say(table([*lines[:-1], ("time", f"{seconds:.1f} s"), lines[-1]]))
    raise typer.Exit(exit_code(model))


def _write(
    output: Path,
    model: "SubspaceEstimator",
    data: "Dataset",
    source: _input.Source,
    *,
    remarks: list[str],
    clock: list[float],
    with_report: bool,
    force: bool,
) -> dict[str, Any]:
    """Write all files, and return what is in result.json."""
    from perpend.cli._result import describe_fit
    from perpend.formats import write_answer

    said = _output.answer_of(model, data, fitted=True)
    with _output.staging(output, source.path, force=force) as draft:
        _output.write_labels(draft / _output.LABELS, data, said)
        write_answer(data, said, draft)
        _output.save_model(draft / _output.MODEL, model, data)
        result = describe_fit(model, data, source, remarks)
        result["timings"] = {"read": clock[1] - clock[0], "fit": clock[2] - clock[1]}
        if with_report:
            remarks += add_report(draft, model, data, said, result, source)
        _output.write_result(draft, result)
    return result


def _summary(
    model: "SubspaceEstimator",
    data: "Dataset",
    source: _input.Source,
    folder: Path,
    files: list[str],
    *,
    given: options.Affine | None,
) -> Lines:
    n, D = data.X.shape
    records, features = _input.RECORDS[data.kind], _input.FEATURES[data.kind]
    size = f"{count(n)} {records}s x {count(D)} {features}s, {data.X.dtype}"
    first, *others = [*files, _output.RESULT]
    has_report = _output.REPORT in files
    page = f"open {folder / _output.REPORT} in a browser"
    command = f"perpend apply {folder / _output.MODEL} NEW -o MORE"
    return [
        ("data", f"{source.name}: {size}"),
        *left_out(data),
        *answer(model),
        ("affine", which_affine(model, data.kind, given)),
        *noise(model, features),
        *seen(model, records),
        ("wrote", "  ".join([str(folder / first), *others])),
        ("next", page if has_report else command),
    ]
