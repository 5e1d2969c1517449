"""What `compare` returns: a record for each method, and the table of them."""

import csv
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from perpend._files import write
from perpend._grid import grid
from perpend._json import plain
from perpend._typing import Array
from perpend._verdict import confidence
from perpend.comparison.pca import PCABaseline

if TYPE_CHECKING:
    from perpend.plots import ComparisonDisplay


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparedMethod:
    """The result of one method; `problem` says why there is none. What is unknown is None."""

    method: str  # its name
    problem: str | None = None  # why it failed, or was not run
    codimension: int | None = None  # None for methods that find no subspace
    dimension: int | None = None  # number of features minus that
    given: bool = False  # whether it was given the codimension
    affine: bool | None = None  # whether the subspace misses the origin
    confidence: float | None = None  # from 0.95 on it is called sure
    outliers: int | None = None  # how many rows it labels as outliers
    outlier_share: float | None = None  # the same over all rows
    threshold: float | None = None  # the distance from which a row is an outlier
    noise: float | None = None  # expected norm of the inliers' noise
    converged: bool | None = None  # None for methods without iterations
    seconds: float = 0.0  # wall time of the fit
    cpu_seconds: float = 0.0  # processor time of the fit, all threads together
    label_agreement: float | None = None  # share of the rows with the label of the first method
    largest_angle_degrees: float | None = None  # to the first subspace, if dimensions are equal
    f1: float | None = None  # of the outliers, with true labels
    auc: float | None = None  # of the scores, with true labels
    subspace_error: float | None = None  # sine of the largest angle to the true subspace
    warnings: tuple[str, ...] = ()  # what the method warned about
    model: Any = field(default=None, repr=False)  # the fitted model
    labels: Array | None = field(default=None, repr=False)  # (n,) +1 and -1
    scores: Array | None = field(default=None, repr=False)  # (n,) with true labels: higher is inner
    normals: Array | None = field(default=None, repr=False)  # (codimension, D)
    error: Exception | None = field(default=None, repr=False)  # what it raised

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers and words, without arrays, model and exception.

        Returns
        -------
        dict
        """
        arrays = {"model", "labels", "scores", "normals", "error"}
        kept = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in arrays}
        return {**kept, "warnings": list(self.warnings)}


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """What `compare` returns: a record for each method, and how methods agree with one another.

    Print it for a table; `to_csv`, `to_dict` and `to_json` hold the same numbers, and `plot` draws
    them. ``comparison["RSGM"]`` is the record of a method.
    """

    rows: tuple[ComparedMethod, ...]  # one record for each method
    label_agreement: Array  # (m, m) share of rows with equal labels; NaN where one has none
    angle: Array  # (m, m) largest principal angle in degrees; NaN where dimensions differ
    distance: Array  # (m, m) `perpend.subspace_distance` of the complements; NaN where one has none
    codimension: int | None  # that methods were given; None if none was known
    given_by: str | None  # who gave it, in words

    def __getitem__(self, method: str) -> ComparedMethod:
        return self.rows[self.methods.index(method)]

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the methods, in the order of the rows and of the matrices."""
        return tuple(row.method for row in self.rows)

    def pairs(self) -> list[dict[str, Any]]:
        """Return a record for each pair of methods: how far they agree.

        Returns
        -------
        list of dict
            With the two methods, `label_agreement`, `largest_angle_degrees` and
            `subspace_distance`; None where there is no such number.
        """
        names = self.methods
        of = {
            "label_agreement": self.label_agreement,
            "largest_angle_degrees": self.angle,
            "subspace_distance": self.distance,
        }
        return [
            {"method": names[i], "other": names[j]} | {key: plain(M[i, j]) for key, M in of.items()}
            for i in range(len(names))
            for j in range(i + 1, len(names))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the models and arrays of rows, in plain types.

        Returns
        -------
        dict
            With `codimension`, `given_by`, `methods` and `pairs`.
        """
        content = {
            "codimension": self.codimension,
            "given_by": self.given_by,
            "methods": [row.to_dict() for row in self.rows],
            "pairs": self.pairs(),
        }
        plain_content: dict[str, Any] = plain(content)
        return plain_content

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return `to_dict` as JSON.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to.

        Returns
        -------
        str
        """
        return _written(json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n", path)

    def to_csv(self, path: str | os.PathLike[str] | None = None, *, pairs: bool = False) -> str:
        """Return a table with a line for each method.

        Parameters
        ----------
        path : str or path, optional
            A file to write it to.
        pairs : bool, default=False
            A line for each pair of methods instead.

        Returns
        -------
        str
        """
        records = self.to_dict()["pairs" if pairs else "methods"]
        names = ["method", "other", "label_agreement", "largest_angle_degrees", "subspace_distance"]
        if not pairs:
            names = list(self.rows[0].to_dict())
            records = [one | {"warnings": " ".join(one["warnings"])} for one in records]
        stream = io.StringIO(newline="")
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return _written(stream.getvalue(), path)

    def plot(self, ax: Any = None) -> "ComparisonDisplay":
        """Draw how methods agree, by labels and by angles, and how long they took.

        Needs matplotlib: ``pip install 'perpend[plots]'``.

        Parameters
        ----------
        ax : array of three matplotlib axes, optional
            Where to draw; by default a new figure, which ``plt.show()`` shows.

        Returns
        -------
        perpend.plots.ComparisonDisplay
        """
        from perpend.plots import ComparisonDisplay

        return ComparisonDisplay.from_comparison(self, ax=ax)

    def __str__(self) -> str:
        shown = [key for key in CELLS if any(getattr(row, key) is not None for row in self.rows)]
        heads = [CELLS[key][0] for key in shown]
        text = grid(["method", *heads], [_cells(row, shown) for row in self.rows])
        first, notes = self.rows[0].method, {}
        if self.codimension is not None and any(row.given for row in self.rows):
            notes["given"] = f"codimension {self.codimension}, by {self.given_by}"
        if len(self.rows) > 1:
            notes["labels"] = f"same labels: share of the rows with the label of {first}"
            notes["angle"] = f"the largest to the subspace of {first}, in degrees"
        if any(isinstance(row.model, PCABaseline) for row in self.rows):
            notes["PCA"] = "labels as many outliers as the first method, or as it was given"
        twins = [f"{one} and {other}, to the last bit" for one, other in self._twins()]
        if twins:
            notes["equal"] = "; ".join(twins)
        unfinished = [row.method for row in self.rows if row.converged is False]
        if unfinished:
            notes["unfinished"] = f"{', '.join(unfinished)} did not converge"
        return "\n".join([text, *[""][: len(notes)], *(f"{k:<11} {v}" for k, v in notes.items())])

    def _twins(self) -> list[tuple[str, str]]:
        """Return pairs of methods with exactly the same subspace, whose agreement says nothing."""
        found = [(row.method, row.normals) for row in self.rows if row.normals is not None]
        return [
            (one, other)
            for i, (one, V) in enumerate(found)
            for other, W in found[i + 1 :]
            if len(V) and np.array_equal(V, W)
        ]

    def __repr__(self) -> str:
        failed = sum(row.problem is not None for row in self.rows)
        return f"Comparison({len(self.rows)} methods, {failed} without a result)"


CELLS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "codimension": ("codimension", str),
    "dimension": ("dimension", str),
    "confidence": ("confidence", confidence),
    "outlier_share": ("outliers", lambda v: f"{100 * v:.1f} %"),
    "noise": ("noise", "{:.2g}".format),
    "seconds": ("time", "{:.2f} s".format),
    "cpu_seconds": ("CPU", "{:.2f} s".format),
    "label_agreement": ("same labels", lambda v: f"{100 * v:.1f} %"),
    "largest_angle_degrees": ("angle", "{:.2g}".format),
    "f1": ("F1", "{:.3f}".format),
    "auc": ("AUC", "{:.3f}".format),
    "subspace_error": ("error", "{:.2g}".format),
}
"""Cells of the table by field: head, and how it is written."""


def _cells(row: ComparedMethod, shown: list[str]) -> list[str]:
    """Return the cells of the table, or what went wrong."""
    if row.problem is not None:
        return [row.method, row.problem]
    values = [getattr(row, key) for key in shown]
    texts = ["-" if v is None else CELLS[k][1](v) for k, v in zip(shown, values, strict=True)]
    given = [" (given)" if row.given and key == "codimension" else "" for key in shown]
    return [row.method, *(text + more for text, more in zip(texts, given, strict=True))]


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        write(path, text)
    return text
