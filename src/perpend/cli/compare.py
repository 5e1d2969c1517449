"""``perpend compare FILE``: all methods and PCA on the same rows, side by side."""

import shlex
import time
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING

import typer

from perpend.cli import _input, _output
from perpend.cli import _options as options
from perpend.cli._comparison import Row, compared, pca
from perpend.cli._console import grid, page, say, say_json, warn
from perpend.cli._memory import check_fit, limit
from perpend.cli._model import affine, build, fit_model, needs_codimension
from perpend.cli._options import METHODS
from perpend.cli._progress import monitor
from perpend.cli._summary import NOT_SURE, exit_code

if TYPE_CHECKING:
    from perpend._progress import Monitor
    from perpend.formats import Dataset

SCHEMA = 1


def compare(given: options.Rows, how: options.Search, *, json: options.Json = False) -> None:
    """Run all methods and PCA on the same rows, side by side.

    Methods that need the codimension get the one that DPCP found. So does PCA, which labels the
    same number of outliers. A method that fails is shown with the reason, and the others go on.
    Nothing is written.
    """
    began = time.perf_counter()
    with (
        monitor() as watch,
        _input.opened(given, limit(given.memory_limit)) as source,
    ):
        watch.phase(f"reading {source.name}")
        data = _input.read_for_fit(source, given)
        check_fit(data, given.memory_limit, affine=affine(how, data) is not options.Affine.no)
        rows = _run(options.Method(**vars(how)), data, watch)
    compared(rows)
    if json:
        described = _output.preamble("compare", SCHEMA) | {
            "seed": how.seed,
            "input": _output.describe_input(data, source),
            "methods": [row.described() for row in rows],
        }
        say_json(described)
    else:
        for row in rows:
            for remark in row.warnings:
                # There is no --max-iter and no --starts here.
                warn(f"{row.method}: {remark}", of="perpend fit")
        first = rows[0].method
        heads = ["method", "codimension", "confidence", "outliers", "noise", "time"]
        heads += [f"labels as {first}", f"angle to {first}"]
        facts = {
            **_input.about_data(data, source),
            "first": first,
            "grid": grid(heads, [row.cells() for row in rows]),
            "seconds": time.perf_counter() - began,
            "given": _options_given(given, how),
        }
        say(page("compare", facts))
    model = rows[0].model
    raise typer.Exit(NOT_SURE if model is None else exit_code(model))


def _run(how: options.Method, data: "Dataset", watch: "Monitor") -> list[Row]:
    """Fit one method after the other; if one fails, the others go on."""
    watch.phase("loading scikit-learn")
    rows = []
    codimension = how.codimension
    for done, name in enumerate(METHODS):
        watch.part(name, done, len(METHODS) + 1)
        row = Row(name, given=how.codimension != "auto")
        if codimension == "auto" and needs_codimension(name):
            row.problem = f"not run: it needs the codimension, and {METHODS[0]} found none"
        elif codimension == 0 and needs_codimension(name):
            row.problem = f"not run: {METHODS[0]} found codimension 0, so there is no subspace"
        else:
            row.given = row.given or needs_codimension(name)
            given = codimension if row.given else "auto"
            with row.timed(data):
                model = build(replace(how, method=name, codimension=given), data)
                row.warnings = fit_model(model, data)
                row.model, row.labels, row.normals = model, model.labels_, model.normals_
            if row.model is not None and codimension == "auto":
                codimension = row.model.codimension_
        rows.append(row)
    watch.part("PCA", len(METHODS), len(METHODS) + 1)
    rows.append(pca(rows[0], data))
    failures = [row.error for row in rows if row.error is not None]
    if failures and all(row.problem for row in rows):
        raise failures[0]
    return rows


def _options_given(*records: options.Rows | options.Search) -> str:
    """Return the options that were given, as ``perpend fit`` takes them."""
    given = {
        one.name.replace("_", "-"): getattr(record, one.name)
        for record in records
        for one in fields(record)
        if one.default not in (MISSING, getattr(record, one.name))
    }
    texts = {name: ",".join(v) if isinstance(v, tuple) else str(v) for name, v in given.items()}
    return "".join(f" --{name} {shlex.quote(text)}" for name, text in sorted(texts.items()))
