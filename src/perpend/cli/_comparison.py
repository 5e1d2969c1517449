"""One line of ``perpend compare``: a method or PCA, and how it agrees with the first method."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perpend.exceptions import PerpendError

if TYPE_CHECKING:
    from perpend._typing import Array
    from perpend.formats import Dataset

ROWS_AT_ONCE = 1 << 16  # in a product


@dataclass
class Row:
    """The result of one method; a `problem` says why there is none."""

    method: str
    given: bool = False  # whether the method was given the codimension
    problem: str = ""
    error: Exception | None = None
    model: Any = None
    labels: "Array | None" = None
    normals: "Array | None" = None
    distance: "Array | None" = None  # of PCA
    seconds: float = 0.0
    agreement: float | None = None  # share of rows labelled as by the first method
    angle: float | None = None  # degrees; None where the dimensions differ
    warnings: list[str] = field(default_factory=list)

    @contextmanager
    def timed(self, data: "Dataset") -> Iterator[None]:
        """Note how long the block takes, and why it fails, if it does: the others go on."""
        began = time.perf_counter()
        try:
            yield
        except Exception as error:  # noqa: BLE001  the table shows it
            self.error = error
            text = str(error).removeprefix(f"{data.source}: ") or "no details"
            kind = "" if isinstance(error, PerpendError) else f"{type(error).__name__}: "
            self.problem = f"failed: {kind}{text}"
            if isinstance(error, MemoryError) and kind:
                self.problem = f"failed: not enough memory ({text})"
        self.seconds = time.perf_counter() - began

    def described(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        codimension = outliers = share = None
        if self.normals is not None and self.labels is not None:
            codimension, outliers = len(self.normals), int((self.labels == -1).sum())
            share = outliers / len(self.labels)
        return {
            "method": self.method,
            "problem": self.problem or None,
            "codimension": codimension,
            "given": self.given,
            "told": self.given,  # the name of 0.1
            "confidence": getattr(self.model, "confidence_", None),
            "outliers": outliers,
            "outlier_share": share,
            "threshold": getattr(self.model, "threshold_", None),
            "noise": getattr(self.model, "noise_", None),
            "converged": getattr(self.model, "converged_", None),
            "seconds": self.seconds,
            "label_agreement": self.agreement,
            "largest_angle_degrees": self.angle,
            "warnings": self.warnings,
        }

    def cells(self) -> list[str]:
        """Return the cells of the table: one for each of `CELLS`, or what went wrong."""
        if self.problem:
            return [self.method, self.problem]
        found = self.described()
        values = [("-" if found[key] is None else form(found[key])) for key, form in CELLS.items()]
        values[0] += " (given)" if self.given else ""
        return [self.method, *values]


CELLS: dict[str, Callable[[Any], str]] = {
    "codimension": str,
    "confidence": "{:.2f}".format,
    "outlier_share": lambda share: f"{100 * share:.1f} %",
    "noise": "{:.2g}".format,
    "seconds": "{:.2f} s".format,
    "label_agreement": lambda share: f"{100 * share:.1f} %",
    "largest_angle_degrees": "{:.2g}".format,
}


def compared(rows: list[Row]) -> None:
    """Fill in how each method agrees with the first."""
    from perpend.metrics import principal_angles

    first = rows[0]
    if first.normals is None or first.labels is None:
        return
    for row in rows[1:]:
        if row.normals is None or row.labels is None:
            continue
        row.agreement = float((row.labels == first.labels).mean())
        if len(row.normals) == len(first.normals) > 0:
            row.angle = math.degrees(float(principal_angles(row.normals, first.normals).max()))


def pca(first: Row, data: "Dataset") -> Row:
    """Run PCA with the codimension of the first method, on rows prepared in the same way.

    PCA has no threshold, so it labels as many rows as outliers as the first method did.
    """
    import numpy as np

    row = Row("PCA", given=True)
    if first.model is None or first.labels is None:
        row.problem = f"not run: it needs the codimension, and {first.method} found none"
        return row
    with row.timed(data):
        row.normals, row.distance = _smallest_axes(data.X, first.model)
        farthest = np.argsort(-row.distance, kind="stable")[: int((first.labels == -1).sum())]
        row.labels = np.ones(len(row.distance), dtype=int)
        row.labels[farthest] = -1
    return row


def _smallest_axes(X: "Array", model: Any) -> tuple["Array", "Array"]:
    """Return the axes along which the rows vary least, and the norm of each row along them."""
    import numpy as np

    D, c = X.shape[1], model.codimension_
    centre, scale = np.zeros(D), float(max(X.max(), -X.min())) or 1.0
    if model.affine_:  # otherwise products must neither over- nor underflow
        centre, scale = X.mean(axis=0, dtype=float), 1.0

    def blocks() -> Any:
        for begin in range(0, len(X), ROWS_AT_ONCE):
            block = (X[begin : begin + ROWS_AT_ONCE] - centre) / scale
            if model.normalize and not model.affine_:
                norms = np.linalg.norm(block, axis=1, keepdims=True)
                block = block / np.where(norms > 0, norms, 1.0)
            yield block

    _, axes = np.linalg.eigh(sum((block.T @ block for block in blocks()), np.zeros((D, D))))
    normals = axes[:, :c].T
    return normals, np.concatenate([np.linalg.norm(b @ normals.T, axis=1) for b in blocks()])
