"""``perpend fit FILE -o DIR``: find the subspace of the rows of a file."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perpend.cli import _input, _output, _streaming
from perpend.cli import _options as options
from perpend.cli._console import bug_message, count, finish, page
from perpend.cli._equations import Fit, explained
from perpend.cli._memory import limit
from perpend.cli._model import build, check_together, fit_model
from perpend.cli._progress import monitor
from perpend.cli._resume import CHECKPOINT, Resumed, options_of
from perpend.cli._scaling import standardised
from perpend.cli._summary import about_model, collected_warnings, exit_code, unsaid_doubts
from perpend.exceptions import PerpendError

if TYPE_CHECKING:
    from perpend.formats import Dataset, Labelled


def fit(
    given: options.Rows,
    *,
    output: options.Output,
    how: options.Method,
    no_report: Annotated[bool, typer.Option("--no-report", help="Make no report.html.")] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Save the state of the fit every few seconds, and go on from there if the command "
            "is run again after an interruption. The result is the same.",
        ),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        options.option(
            "FILE",
            "--resume, with this file for the state instead of DIR/fit.checkpoint.",
            autocompletion=options.complete_path,
        ),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the subspace of the rows of a file, and the outliers.

    For outliers of any kind in a table: perpend fit TABLE --outliers both -o DIR.

    Writes to DIR: report.html (open it in a browser), labels.csv (row from 0, distance, probability
    of being an outlier, inlier 1 or 0), the labels in the format of FILE, model.npz (for perpend
    apply and perpend.load), result.json (everything else) and report.json (what report.html is
    made from).
    """
    check_together(how)
    resumed = Resumed(checkpoint or (output / CHECKPOINT if resume else None), given.file)
    asked = options_of(given, how, report=not no_report)
    resumed.stop_if_finished(output, given.file, asked, force=force, json=json, quiet=quiet)
    pages = () if no_report else (_output.REPORT, _output.FACTS)
    names = [_output.LABELS, _output.MODEL, _output.RESULT, *pages]
    _output.check_folder(output, given.file, names, force=force, own=resumed.results)
    clock = [time.perf_counter()]
    with (
        monitor(quiet=quiet) as watch,
        _input.opened(given, limit(given.memory_limit)) as source,
    ):
        watch.phase(f"reading {source.name}")
        blocks = _input.blocks(source, given)
        watch.phase("loading scikit-learn")
        model = build(how, blocks.about, watch)
        model.set_params(missing="mask" if given.nan is options.Nan.mask else "error")
        watch.phase(f"reading {source.name}")
        data = _streaming.in_memory_or_not(blocks, given, how, model, watch, quiet=quiet)
        clock.append(time.perf_counter())
        scaler, seen = standardised(how, data)
        with resumed.fitting(quiet=quiet):
            remarks = fit_model(model, seen, resumed.path, how.scheduler)
        best, streamed = Fit(model, data, seen, scaler, remarks), _streaming.is_streamed(data)
        if not streamed:
            equations, best = explained(best, how, leave_out=not given.columns)  # these are meant
        model, data, scaler, whole = best.model, best.data, best.scaler, best.whole
        clock.append(time.perf_counter())
        watch.phase("writing the results")
        with _output.staging(
            output, source.path, force=force, own=resumed.results, note=resumed.note_results
        ) as draft:
            written = _streaming.write_rows(draft, model, data, best.seen.X, fitted=True)
            shown, note = written.shown, written.note
            if streamed:
                equations, best = explained(replace(best, data=shown), how, leave_out=False)
            remarks = best.remarks + unsaid_doubts(model, best.remarks)
            _output.save_model(draft / _output.MODEL, whole, data)
            result = _output.describe_fit(model, data, source, scaler) | {"warnings": remarks}
            result |= {
                "options": asked,
                "relations": equations.relations,
                "nearly_constant": equations.constants,
                "without_constants": equations.others,
                "timings": {"read": clock[1] - clock[0], "fit": clock[2] - clock[1]},
            }
            if note:
                passes = data.X.passes + _streaming.SURVEYS
                result["blocks"] = {"memory_limit": data.X.memory_limit, "passes": passes}
            if not no_report:
                said = result | {"warnings": [*note, *remarks]}
                title = _title(source, data, shown)
                remarks += _add_report(draft, whole, shown, written.labelled, said, title)
            _output.write_result(draft, result)
        resumed.end()

    def summary() -> str:
        facts = about_model(model, _input.RECORDS[data.kind]) | _input.about_data(data, source)
        facts |= {
            "folder": output,
            "files": list(result["files"]),
            "affine": how.affine,
            "scaler": scaler,
            "equations": equations,
            "outliers": how.outliers,
        }
        return page("fit", facts | {"seconds": time.perf_counter() - clock[0]})

    finish(result, summary, remarks=remarks, json=json, quiet=quiet)
    raise typer.Exit(exit_code(model))


def _title(source: _input.Source, data: "Dataset", shown: "Dataset") -> str | None:
    """Return the heading of the report, if it is not the name of the file."""
    if len(shown.X) == len(data.X):
        return source.name if source.is_stdin else None
    some, n = count(len(shown.X)), count(len(data.X))
    return f"{source.short_name}: {some} of {n} {_input.RECORDS[data.kind]}s"


def _add_report(  # noqa: PLR0917
    folder: Path,
    model: Any,
    data: "Dataset",
    labelled: "Labelled",
    result: dict[str, Any],
    title: str | None,
) -> list[str]:
    """Write report.html; if that fails, return why, and keep the other results."""
    html, facts = folder / _output.REPORT, folder / _output.FACTS
    try:
        from perpend.report import write_report

        with collected_warnings():
            write_report(
                html, model, data, labelled=labelled, result=result, title=title, facts_path=facts
            )
    except PerpendError as error:
        return [f"there is no {html.name}: {error}"]
    except OSError:
        raise  # a full disk concerns all files
    except Exception as error:  # noqa: BLE001
        html.unlink(missing_ok=True)
        facts.unlink(missing_ok=True)
        return [f"there is no {html.name}: {bug_message(error)}"]
    return []
