"""``perpend compare FILE``: all methods and PCA on the same rows, side by side."""

import shlex
import time
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perpend.cli import _input, _output
from perpend.cli import _options as options
from perpend.cli._columns import feature_name
from perpend.cli._console import Refusal, page, say, say_json, warn
from perpend.cli._memory import check_fit, limit
from perpend.cli._model import PARAMETER, affine, named_errors, with_names
from perpend.cli._progress import monitor
from perpend.cli._scaling import standardised, wanted
from perpend.cli._summary import NOT_SURE, exit_code
from perpend.exceptions import InputError, MissingExtraError

if TYPE_CHECKING:
    from perpend._typing import Array
    from perpend.comparison import Comparison
    from perpend.formats import Dataset

SCHEMA = 2  # 1: before methods that find no subspace took part
FILES = ("comparison.csv", "pairs.csv", "comparison.json", "comparison.png", "comparison.svg")


def compare(
    given: options.Rows,
    how: options.Search,
    *,
    methods: Annotated[
        Any,
        options.option(
            "A,B,C",
            "Only these methods, also those that take long or much memory; PCA is one of them. By "
            "default all that fit.",
            options.known_methods,
        ),
    ] = None,
    truth: Annotated[
        str | None,
        options.option(
            "COLUMN",
            "The column with true labels: -1 for outliers and 1 for inliers, or 1 and 0. No method "
            "sees it.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None, options.option("SECONDS", "Stop a method that takes longer.", min=0)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Folder for the comparison as CSV, JSON and a picture.",
            autocompletion=options.complete_path,
        ),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Run all methods and PCA on the same rows, side by side.

    Methods that need the codimension get the one that DPCP found. So does PCA, which labels the
    same number of outliers. A method that fails is shown with the reason, and the others go on.
    With -o it writes comparison.csv, pairs.csv (how far each two methods agree), comparison.json
    and, if matplotlib is installed, comparison.png and .svg.
    """
    began = time.perf_counter()
    if output is not None:
        _output.check_folder(output, given.file, list(FILES), force=force)
    with (
        monitor() as watch,
        _input.opened(given, limit(given.memory_limit)) as source,
    ):
        watch.phase(f"reading {source.name}")
        if given.nan is options.Nan.mask:
            raise Refusal(
                "PCA and methods of other kinds, which are compared too, need complete rows. Use "
                "--nan drop-rows."
            )
        own = given if truth is None else _without(given, truth)
        alone = replace(given, columns=(truth,), exclude=None)
        labels = None if truth is None else _input.blocks(source, alone).dataset()
        data = _input.read_for_fit(_input.blocks(source, own).dataset(), own, _input.WAYS[1:])
        may_miss, scaled = affine(how, data) is not options.Affine.no, wanted(how, data)
        check_fit(data, given.memory_limit, affine=may_miss, scaled=scaled)
        _, seen = standardised(how, data)
        watch.phase("loading scikit-learn")
        from perpend.comparison import compare

        with named_errors(data):
            found = compare(
                seen.X,
                None if labels is None else _labels(labels, data),
                methods,
                codimension=None if how.codimension == "auto" else how.codimension,
                time_limit=time_limit,
                memory_limit=given.memory_limit,
                random_state=how.seed,
                progress=watch.part,
                affine=PARAMETER[affine(how, data)],
                device=how.device,
                outliers=options.OUTLIERS[data.kind],
            )
        described = _output.preamble("compare", SCHEMA) | {
            "seed": how.seed,
            "input": _output.describe_input(data, source),
            **found.to_dict(),
        }
        for row in described["methods"]:
            row["told"] = row["given"]  # the name of 0.1
            row["warnings"] = [with_names(text, data) for text in row["warnings"]]
        if output is not None:
            watch.phase("writing the results")
            _write(found, output)
    if json:
        say_json(described)
    else:
        first = described["methods"][0]  # those of the others are in the files
        for remark in first["warnings"]:
            # There is no --max-iter and no --starts here.
            warn(f"{first['method']}: {remark}", of="perpend fit")
        facts = {
            **_input.about_data(data, source),
            "found": found,
            "seconds": time.perf_counter() - began,
            "given": _options_given(given, how),
            "scaled": scaled,
            "output": output,
        }
        say(page("compare", facts))
    model = found.rows[0].model
    if model is None:
        raise typer.Exit(NOT_SURE)
    raise typer.Exit(exit_code(model) if hasattr(model, "confidence_") else 0)


def _write(found: "Comparison", folder: Path) -> None:
    """Write the files; without matplotlib, all but the picture."""
    folder.mkdir(parents=True, exist_ok=True)
    found.to_csv(folder / FILES[0])
    found.to_csv(folder / FILES[1], pairs=True)
    found.to_json(folder / FILES[2])
    try:
        from perpend.plots import ComparisonDisplay, figure, save

        with figure(1, 3, panel=ComparisonDisplay.size) as (drawing, axes):
            ComparisonDisplay.from_comparison(found, ax=axes)
            save(drawing, folder / Path(FILES[3]).stem)
    except MissingExtraError as error:
        warn(f"there is no {FILES[3]}: {error}")


def _without(given: options.Rows, column: str) -> options.Rows:
    if given.columns is not None:
        return replace(given, columns=tuple(name for name in given.columns if name != column))
    return replace(given, exclude=(*(given.exclude or ()), column))


def _labels(labels: "Dataset", data: "Dataset") -> "Array":
    """Return the true labels of the rows that are left, +1 and -1."""
    import numpy as np

    y = labels.X[:, 0] if data.positions is None else labels.X[data.positions, 0]
    values = set(np.unique(y).tolist())
    if not values <= {-1.0, 1.0} and not values <= {0.0, 1.0}:
        shown = ", ".join(f"{value:g}" for value in sorted(values)[:5])
        raise InputError(
            f"column {feature_name(labels, 0)} has the values {shown}; expected -1 "
            "for outliers and 1 for inliers, or 1 for outliers and 0 for inliers."
        )
    return np.where(y == (1.0 if 0.0 in values else -1.0), -1, 1)


def _options_given(*records: options.Rows | options.Search) -> str:
    """Return the options that were given, as ``perpend fit`` takes them."""
    given = {
        one.name.replace("_", "-"): getattr(record, one.name)
        for record in records
        for one in fields(record)
        if one.default not in (MISSING, getattr(record, one.name))
    }
    texts = {name: ",".join(v) if isinstance(v, tuple) else str(v) for name, v in given.items()}
    return "".join(
        f" --{name}" if given[name] is True else f" --{name} {shlex.quote(text)}"
        for name, text in sorted(texts.items())
    )
