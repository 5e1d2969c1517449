"""One page about a fit: the verdict, the confidence and its reasons, pictures, outliers, equations.

The page is a single HTML file that needs no network. Everything on it is escaped by default, and it
has a strict content security policy. It is made from plain facts (`_facts.py`), which can be kept
as JSON, so it can be made again without the data.
"""

import json
import os
from pathlib import Path
from typing import Any

from perpend._deprecation import renamed_parameters
from perpend._files import write
from perpend.formats._dataset import Labelled
from perpend.report._facts import gather
from perpend.report._folder import FACTS, PAGE, report_from_folder
from perpend.report._page import page

__all__ = ["FACTS", "PAGE", "report_from_folder", "write_report"]


@renamed_parameters(until="0.4", answer="labelled")
def write_report(
    path: str | os.PathLike[str],
    model: Any,
    data: Any = None,
    *,
    labelled: Labelled | None = None,
    result: dict[str, Any] | None = None,
    title: str | None = None,
    facts_path: str | os.PathLike[str] | None = None,
    groups: Any = None,
) -> Path:
    """Write a page about a fitted model and its rows.

    Parameters
    ----------
    path : str or path
        The file, usually ``.html``; an existing one is replaced once the new one is complete.
    model : a fitted method of perpend, or a pipeline of scalers and a method
        For a pipeline, give rows in the data's own units. The page has equations and values in
        them, and distances in the units of the scaled columns.
    data : array-like or Dataset, optional
        The rows that the page shows, usually those of the fit. A `Dataset` also knows the names of
        its columns, the places of its rows in the file, and whether it is an image or a point
        cloud. Without it there are no pictures of rows, and no table of outliers. Columns without
        names are counted from 1 on the page: "column 1" is ``X[:, 0]``.
    labelled : perpend.formats.Labelled, optional
        Labels, distances and probabilities of the rows, if they are known already.
    result : dict, optional
        The content of ``result.json``: input, timings, versions and warnings of the fit.
    title : str, optional
        The heading; the name of the file by default.
    facts_path : str or path, optional
        Where to keep the facts behind the page, as JSON. With ``report.json`` in a folder of
        results, `report_from_folder` makes the page again without the data.
    groups : array-like of shape (n_samples,), optional
        Ids of rows that are inliers or outliers together, as in `fit`.

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> import tempfile
    >>> from perpend import DPCP
    >>> from perpend.datasets import make_subspace
    >>> X = make_subspace(200, 100, n_features=6, codimension=2, random_state=0).X
    >>> model = DPCP(random_state=1000).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = write_report(Path(folder) / "report.html", model, X).read_text(encoding="utf-8")
    >>> "200 of 300 rows lie on a 4-dimensional subspace in 6 columns" in text
    True
    """
    facts = gather(model, data, labelled=labelled, result=result, title=title, groups=groups)
    if facts_path is not None:
        write(facts_path, json.dumps(facts, separators=(",", ":"), allow_nan=False))
    write(path, page(facts))
    return Path(path)
