"""The page again, from the folder of results that ``perpend fit`` wrote."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import TemplateError

from perpend._files import write
from perpend._pipelines import opened
from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._dataset import Labelled
from perpend.persistence import load
from perpend.report._facts import SCHEMA, gather
from perpend.report._page import page
from perpend.report._words import Facts, column_labels

PAGE, FACTS = "report.html", "report.json"
MODEL, RESULT, LABELS = "model.npz", "result.json", "labels.csv"
EARLIER = (1,)  # schemas of facts that this version does not draw
MAX_BYTES = 64 << 20  # of JSON that are read
# what a damaged or foreign file of facts makes the templates raise
BAD_FACTS = (
    *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
    TemplateError,
)


def report_from_folder(
    folder: str | os.PathLike[str], *, data: Any = None, path: str | os.PathLike[str] | None = None
) -> Path:
    """Write the page about a folder of results again.

    Parameters
    ----------
    folder : str or path
        What ``perpend fit`` wrote.
    data : array or Dataset, optional
        The rows that the model was fitted to; then the page is made anew, with pictures of them.
    path : str or path, optional
        Where the page goes; ``report.html`` in the folder by default.

    Returns
    -------
    Path
        The page that was written.

    Raises
    ------
    InputError
        If the folder holds no results, or damaged ones.

    Notes
    -----
    ``report.json`` is enough: it holds the facts behind the page, with at most 20 000 points and
    one small picture of the data. Neither the original file nor the model is read. Without it, or
    with one of version 0.1, the page is made from ``model.npz`` and ``result.json``, and from the
    distances in ``labels.csv`` if there are any. Then `data` is needed for pictures of the rows and
    for the columns to blame for outliers. The folder is not trusted: its content is checked, and
    shown as text.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. Give the one that perpend fit wrote.")
    target = folder / PAGE if path is None else Path(path)
    facts = _json(folder / FACTS) if data is None and (folder / FACTS).exists() else None
    has_model = (folder / MODEL).exists()
    if facts is not None and not (facts.get("schema") in EARLIER and has_model):
        content = _drawn(facts, folder / FACTS)
    elif has_model:
        content = page(_facts(folder, data))
    else:
        raise InputError(
            f"{folder}: has neither {FACTS} nor {MODEL}. Run perpend fit with this folder first."
        )
    write(target, content)
    return target


def _drawn(facts: dict[str, Any], path: Path) -> str:
    """Return the page from the facts of a file."""
    if facts.get("schema") != SCHEMA:
        raise InputError(
            f"{path}: has schema {facts.get('schema')!r}, this version of perpend reads {SCHEMA}. "
            "Fit again, or use the version that wrote it."
        )
    try:
        return page(facts)
    except BAD_FACTS as error:
        raise InputError(
            f"{path}: does not hold the facts of a report ({type(error).__name__}: {error}). "
            "Delete it; then the page is made from the model."
        ) from error


def _facts(folder: Path, data: Any) -> Facts:
    """Return the facts from the model, its result and its labels."""
    whole = load(folder / MODEL)
    model = opened(whole).model
    result = _json(folder / RESULT) if (folder / RESULT).exists() else {}
    labelled = None
    if data is None and (folder / LABELS).exists():
        distance = _distances(folder / LABELS)
        if distance is not None and len(distance) == len(model.labels_):
            labelled = Labelled(model.labels_, distance, np.full(len(distance), np.nan))
    facts = gather(whole, data, labelled=labelled, result=result)
    names = (result.get("input") or {}).get("columns")
    if data is None and isinstance(names, list) and len(names) == model.n_features_in_:
        facts["data"]["columns"], facts["data"]["named"] = column_labels(names), True
    return facts


def _distances(path: Path) -> Array | None:
    """Return the column of distances in a table of labels; None without one."""
    with path.open(newline="", encoding="utf-8") as stream:
        lines = csv.reader(stream)
        head = next(lines, [])
        if "distance" not in head:
            return None
        column = head.index("distance")
        try:
            return np.array([float(line[column]) for line in lines])
        except (ValueError, IndexError) as error:
            raise InputError(f"{path}: a distance is no number ({error}). Fit again.") from error


def _json(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: is larger than {MAX_BYTES >> 20} MiB. Fit again.")
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON ({error}). Is it a cut-off copy?") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no JSON object. Fit again.")
    return content
