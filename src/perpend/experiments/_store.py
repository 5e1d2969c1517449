"""What is kept of an experiment: finished cases while it runs, and its results at the end.

``cases.jsonl`` gets a line for each finished case at once, so a run that is killed loses only the
cases in flight. It is needed to go on, or to add seeds; never to draw. ``results.json`` holds all
rows, by column and rounded, and is all that drawing needs.
"""

import csv
import hashlib
import io
import json
import math
import platform
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from perpend import __version__
from perpend._files import write
from perpend.exceptions import InputError
from perpend.experiments._experiment import Case, Results, Row, Tables

SCHEMA = 1
CHECKPOINT, RESULTS = "cases.jsonl", "results.json"
DIGITS = 6  # significant ones; more would only make the files larger
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")  # of a table, as it becomes the name of a file


def key(case: Case) -> str:
    """Return the case as JSON in one fixed form, by which it is recognised.

    >>> key({"seed": 0, "D": 30})
    '{"D":30,"seed":0}'
    """
    return json.dumps(case, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(keys: Iterable[str]) -> str:
    """Return a checksum of this version of perpend and all cases, in any order."""
    text = "\n".join([__version__, *sorted(keys)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plain(tables: Tables) -> Tables:
    """Return the rows as they are stored: Python's own scalars, floats with 6 digits.

    NumPy's scalars are turned into these; NaN and infinities become None.

    >>> plain({"t": [{"x": 1 / 3, "n": 2, "bad": math.inf}]})
    {'t': [{'x': 0.333333, 'n': 2, 'bad': None}]}
    """
    for name in tables:
        if not NAME.fullmatch(name):
            raise TypeError(f"the table {name!r} must be called by letters, digits, _ and -.")
    return {
        name: [{column: _scalar(column, value) for column, value in row.items()} for row in rows]
        for name, rows in tables.items()
    }


def _scalar(column: str, value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy's scalars, and arrays without dimensions
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    raise TypeError(
        f"the column {column!r} holds a {type(value).__name__}; rows hold numbers, booleans, "
        "strings or None."
    )


# -- cases, while it runs --------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What became of a case: tables, or the error in words."""

    case: Case
    tables: Tables
    seconds: float
    error: str = ""


def read_cases(folder: Path) -> dict[str, Outcome]:
    """Return the cases that this version of perpend has finished, by their keys."""
    found: dict[str, Outcome] = {}
    path = folder / CHECKPOINT
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        # A run that was killed leaves a cut-off line; that case is computed again.
        with suppress(ValueError, LookupError, TypeError):
            entry = json.loads(line)
            if entry["perpend"] == __version__:
                outcome = Outcome(entry["case"], entry["tables"], float(entry["seconds"]))
                found[key(outcome.case)] = outcome
    return found


def add_case(folder: Path, outcome: Outcome) -> None:
    """Add a finished case at once."""
    entry = {"perpend": __version__, "case": outcome.case, "seconds": round(outcome.seconds, 3)}
    line = json.dumps({**entry, "tables": outcome.tables}, separators=(",", ":"))
    with (folder / CHECKPOINT).open("ab+") as stream:
        stream.seek(0, 2)
        if stream.tell() > 0:
            stream.seek(-1, 2)
            if stream.read(1) != b"\n":  # behind a cut-off line begins a new one
                stream.write(b"\n")
        stream.write(line.encode() + b"\n")


# -- results, at the end ---------------------------------------------------------------------------


def write_results(folder: Path, results: Results) -> None:
    """Write results.json, one line for each column."""
    head = {f.name: getattr(results, f.name) for f in fields(results) if f.name != "tables"}
    lines = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in {"schema": SCHEMA, **head}.items()]
    tables = []
    for name, rows in results.tables.items():
        columns = [
            f"   {json.dumps(column)}: {json.dumps(values, separators=(',', ':'))}"
            for column, values in _columns(rows).items()
        ]
        tables.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(columns) + "\n  }")
    lines.append(' "tables": {\n' + ",\n".join(tables) + "\n }")
    write(folder / RESULTS, "{\n" + ",\n".join(lines) + "\n}\n")


def read_results(folder: Path) -> Results | None:
    """Return what `write_results` has written, or None if there is nothing."""
    path = folder / RESULTS
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        schema = int(content.pop("schema"))
        if schema <= SCHEMA:
            tables = {name: _rows(columns) for name, columns in content.pop("tables").items()}
            return Results(tables=tables, **content)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: not readable as results of perpend ({type(error).__name__}: {error}). "
            "Remove the file and run again: finished cases are not computed anew."
        ) from error
    raise InputError(
        f"{path}: was written by a newer perpend (schema {schema}, this one reads up to {SCHEMA}). "
        "Upgrade perpend, or choose another folder."
    )


def write_csv(folder: Path, results: Results) -> None:
    """Write one CSV for each table."""
    for name, rows in results.tables.items():
        text = io.StringIO()
        table = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        write(folder / f"{name}.csv", text.getvalue())


def _columns(rows: list[Row]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _rows(columns: dict[str, list[Any]]) -> list[Row]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# -- what it ran on --------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """Return the versions that may matter for the numbers."""
    ours = {"perpend": __version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}


def cpu() -> str:
    """Return the model of the processor, without naming the machine."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
