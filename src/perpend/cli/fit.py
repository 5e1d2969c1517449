"""``perpend fit FILE -o DIR``: find the subspace of the rows of a file."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perpend.cli import _input, _output
from perpend.cli import _options as options
from perpend.cli._console import bug_message, finish, page
from perpend.cli._equations import found_equations, with_others
from perpend.cli._memory import check_fit, limit
from perpend.cli._model import affine, build, check_together, fit_model
from perpend.cli._progress import monitor
from perpend.cli._scaling import joined, standardised, wanted
from perpend.cli._summary import about_model, collected_warnings, exit_code, unsaid_doubts
from perpend.exceptions import PerpendError

if TYPE_CHECKING:
    from perpend.formats import Answer, Dataset


def fit(
    given: options.Rows,
    *,
    output: options.Output,
    how: options.Method,
    no_report: Annotated[bool, typer.Option("--no-report", help="Make no report.html.")] = False,
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
    names = [_output.LABELS, _output.MODEL, _output.RESULT]
    names += [] if no_report else [_output.REPORT, _output.FACTS]
    _output.check_folder(output, given.file, names, force=force)
    clock = [time.perf_counter()]
    with (
        monitor(quiet=quiet) as watch,
        _input.opened(given, limit(given.memory_limit)) as source,
    ):
        watch.phase(f"reading {source.name}")
        data = _input.read_for_fit(source, given)
        may_miss, scaled = affine(how, data) is not options.Affine.no, wanted(how, data)
        check_fit(data, given.memory_limit, affine=may_miss, scaled=scaled)
        clock.append(time.perf_counter())
        watch.phase("loading scikit-learn")
        model = build(how, data, watch)
        model.set_params(missing="mask" if given.nan is options.Nan.mask else "error")
        scaler, seen = standardised(how, data)
        remarks = fit_model(model, seen)
        remarks += unsaid_doubts(model, remarks)
        clock.append(time.perf_counter())
        watch.phase("writing the results")
        whole, labelled = joined(scaler, model), _output.label_rows(model, seen, fitted=True)
        equations = with_others(found_equations(whole, data), how, data)
        with _output.staging(output, source.path, data, labelled, force=force) as draft:
            _output.save_model(draft / _output.MODEL, whole, data)
            result = _output.describe_fit(model, data, source, scaler) | {"warnings": remarks}
            result |= {"relations": equations.relations, "nearly_constant": equations.constants}
            result["without_constants"] = equations.others
            result["timings"] = {"read": clock[1] - clock[0], "fit": clock[2] - clock[1]}
            if not no_report:
                title = source.name if source.is_stdin else None
                remarks += _add_report(draft, whole, data, labelled, result, title)
            _output.write_result(draft, result)

    def summary() -> str:
        facts = about_model(model, _input.RECORDS[data.kind]) | _input.about_data(data, source)
        files, seconds = list(result["files"]), time.perf_counter() - clock[0]
        facts |= {"folder": output, "files": files, "seconds": seconds, "affine": how.affine}
        facts |= {"scaler": scaler, "equations": equations, "outliers": how.outliers}
        return page("fit", facts)

    finish(result, summary, remarks=remarks, json=json, quiet=quiet)
    raise typer.Exit(exit_code(model))


def _add_report(  # noqa: PLR0917
    folder: Path,
    model: Any,
    data: "Dataset",
    labelled: "Answer",
    result: dict[str, Any],
    title: str | None,
) -> list[str]:
    """Write report.html; if that fails, return why, and keep the other results."""
    html, facts = folder / _output.REPORT, folder / _output.FACTS
    try:
        from perpend.report import write_report

        with collected_warnings():
            write_report(
                html, model, data, answer=labelled, result=result, title=title, facts_path=facts
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
