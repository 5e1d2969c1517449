"""``perpend apply MODEL FILE -o DIR``: label new rows by a saved model."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perpend.cli import _input, _output, _streaming
from perpend.cli import _options as options
from perpend.cli._console import Refusal, count, finish, page
from perpend.cli._memory import limit
from perpend.cli._progress import monitor
from perpend.cli._scaling import as_seen
from perpend.cli._summary import about_model, collected_warnings, exit_code
from perpend.exceptions import InputError

if TYPE_CHECKING:
    from perpend.estimator import SubspaceEstimator
    from perpend.formats import Dataset

HARDLY_ANY = 0.01  # of the new rows fit: they may be another kind of data,
LEAST_CHANCE = 1e-3  # if rows like those of the fit are so few with less than this probability


def apply(
    model: Annotated[
        Path,
        options.path_argument(
            metavar="MODEL", help="A model.npz that perpend fit wrote, or the folder it is in."
        ),
    ],
    given: options.Rows,
    *,
    output: options.Output,
    threshold: options.Threshold = "auto",
    force: options.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Label new rows by a saved model.

    Columns are matched by name, in any order; without names their number must be the same. Writes
    to DIR: labels.csv, the labels in the format of FILE, and result.json.
    """
    if given.nan is options.Nan.drop_cols:
        raise Refusal(
            "--nan drop-cols would drop columns that the model needs. Use --nan drop-rows."
        )
    _output.check_folder(output, given.file, [_output.LABELS, _output.RESULT], force=force)
    began = time.perf_counter()
    with (
        monitor(quiet=quiet) as watch,
        _input.opened(given, limit(given.memory_limit)) as source,
    ):
        watch.phase("loading scikit-learn")
        from perpend._pipelines import opened
        from perpend.persistence import load

        in_folder = model.is_dir() and (model / _output.MODEL).exists()
        path = model / _output.MODEL if in_folder else model
        whole = load(path)
        fitted = opened(whole).model
        if threshold != "auto":
            fitted.set_params(threshold=threshold, contamination=None)
            fitted.threshold_, fitted.offset_ = threshold, -threshold
        watch.phase(f"reading {source.name}")
        blocks, policy = _input.blocks(source, given), given.nan
        if fitted.missing == "mask" and policy is options.Nan.error:
            policy = options.Nan.mask  # as in the fit
        elif fitted.missing == "error" and policy is options.Nan.mask:
            raise Refusal(f"{path} was fitted without --nan mask. Fit it with that option.")
        how = replace(given, nan=policy)
        data = _streaming.rows_to_label(
            blocks, how, fitted, lambda data: _matching(whole, path, data), watch, quiet=quiet
        )
        seen = as_seen(whole, data).X
        watch.phase("writing the results")
        with _output.staging(output, source.path, force=force) as draft:
            with collected_warnings() as remarks:
                outliers = _streaming.write_rows(draft, fitted, data, seen, fitted=False).outliers
            remarks += _doubts(fitted, path)
            if threshold == "auto":  # a given one may be strict
                remarks += _other_data(fitted, path, len(seen), len(seen) - outliers)
            scaled = whole is not fitted
            result = _output.describe_labels("apply", fitted, data, source, outliers, scaled=scaled)
            result["warnings"] = remarks
            _output.write_result(draft, result)

    def summary() -> str:
        facts = about_model(fitted) | _input.about_data(data, source)
        facts |= {"path": path, "method": result["method"], "outliers": outliers}
        files, seconds = list(result["files"]), time.perf_counter() - began
        return page("apply", facts | {"folder": output, "files": files, "seconds": seconds})

    finish(result, summary, remarks=remarks, json=json, quiet=quiet)
    raise typer.Exit(exit_code(fitted))


def _matching(whole: Any, path: Path, data: "Dataset") -> list[int] | None:
    """Return the places of the columns that a model or pipeline knows; None if they are all."""
    from sklearn.pipeline import Pipeline

    # The names are checked here, by those in the file.
    first = whole[0] if isinstance(whole, Pipeline) else whole
    wanted = [str(name) for name in first.__dict__.pop("feature_names_in_", ())]
    features, D = _input.FEATURES[data.kind], data.X.shape[1]
    numbers = [str(j + 1) for j in range(D)]
    # Without names, a fit that left some columns out has numbered the others.
    numbered = len(wanted) != D and set(wanted) <= set(numbers)
    if wanted and (data.columns is not None or numbered):
        there = list(data.columns or numbers)
        missing = [name for name in wanted if name not in there]
        if missing:
            others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise InputError(
                f'{data.source}: has no {features} "{missing[0]}"{others}, which {path} needs. '
                "Give rows with the columns that the model was fitted to."
            )
        return None if wanted == there else [there.index(name) for name in wanted]
    if first.n_features_in_ != D:
        raise InputError(
            f"{data.source}: has {D} {features}s, but {path} was fitted to "
            f"{first.n_features_in_}. Give the same ones, by --columns if there are too many."
        )
    return None


def _doubts(model: "SubspaceEstimator", path: Path) -> list[str]:
    if model.codimension_ == 0 and model.outliers != "both":
        return [f"{path} found no subspace (codimension 0), so every row is an inlier."]
    if exit_code(model):
        from perpend._verdict import confidence

        return [f"{path}: the model is not sure (confidence {confidence(model.confidence_)})."]
    return []


def _other_data(model: "SubspaceEstimator", path: Path, n: int, fits: int) -> list[str]:
    """Warn if hardly any row fits, though many of the rows of the fit did.

    For new rows of the same kind, so few would have a probability below `LEAST_CHANCE`.
    """
    from scipy.stats import binom

    before = float((model.labels_ == 1).mean())
    if fits >= HARDLY_ANY * n or binom.cdf(fits, n, before) >= LEAST_CHANCE:
        return []
    return [
        f"only {count(fits)} of {count(n)} rows fit the subspace of {path}, against "
        f"{100 * before:.0f} % of the rows of the fit: this does not look like the same kind of "
        "data. Check the units, the order of the columns and the preprocessing."
    ]
