"""What every reader returns and every writer takes: rows, and how they relate to the file."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from perpend._typing import Array
from perpend.exceptions import InputError
from perpend.formats._notation import Notation

Kind = Literal["table", "image", "cloud"]


class Options(NamedTuple):
    """The caller's choices; a format ignores those that do not concern it."""

    variable: str | None = None  # which array, if the file holds several
    columns: tuple[str, ...] | None = None  # which columns, fields or bands, by name
    format: str = ""  # name of the format, for modules that read several
    exclude: tuple[str, ...] = ()  # which not to take
    notation: Notation = Notation()  # of numbers in text
    transpose: bool = False  # points are columns of the file
    skip_rows: int | None = None  # lines of a text above its table; None: found by themselves
    missing_values: tuple[float, ...] = ()  # numbers in a text that stand for a missing one


class Counts(NamedTuple):
    """Counts over all records of the file, before any is left out."""

    nan: int = 0  # records with a NaN or an infinity
    ignored: int = 0  # records that the file marks as no data
    zero: int = 0  # records whose values are all zero
    dropped_columns: tuple[str, ...] = ()  # bands marked as bad, columns without numbers
    partly_ignored: int = 0  # records that stay, though some values are marked as no data


@dataclass(frozen=True)
class Dataset:
    """The usable rows of a file, and what is needed to write their labels in its format.

    A record is a row of a table, a pixel or a point. Records without data are left out of `X`;
    `positions` has the places of the others.
    """

    X: Array  # (n, D) float32 or float64; may be a read-only view of the file
    source: str  # the path as given, for messages
    format: str  # name of the format, such as "envi"
    kind: Kind  # "table", "image" or "cloud"
    shape: tuple[int, ...]  # of the records: (n_records,) or (height, width)
    columns: tuple[str, ...] | None = None  # names of the features, if the file has them
    positions: Array | None = None  # (n,) index of each row among the records; None: all, in order
    stored_dtype: str = ""  # as in the file
    counts: Counts = field(default_factory=Counts)  # what the reader noticed
    origin: Any = None  # what the format's writer needs: headers, coordinates, other fields
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)  # columns by the reason why
    notes: tuple[str, ...] = ()  # what the reader did that users should know


class Labelled(NamedTuple):
    """The labels, distances and probabilities of the rows of a dataset."""

    labels: Array  # (n,) 1 for inliers, -1 for outliers; or bytes: 1, 0, and 255 for no data
    distance: Array  # (n,) in the unit that decides the labels
    probability: Array  # (n,) of being an outlier


def without_missing(dataset: Dataset, drop: str = "rows") -> Dataset:
    """Leave out rows or columns that have NaN or infinite values.

    Parameters
    ----------
    dataset : Dataset
        As it was read.
    drop : {"rows", "columns"}
        What to leave out. Rows keep their `positions`, columns are added to
        ``counts.dropped_columns``.

    Returns
    -------
    Dataset
        The same one if nothing is missing.

    Raises
    ------
    InputError
        If nothing would be left.
    """
    import numpy as np

    if drop not in ("rows", "columns"):
        raise ValueError(f"drop={drop!r} is neither 'rows' nor 'columns'.")
    X, counts = dataset.X, dataset.counts
    axis = 1 if drop == "rows" else 0
    keep = np.flatnonzero(np.isfinite(X).all(axis=axis))
    if len(keep) == X.shape[1 - axis]:
        return dataset
    if len(keep) == 0:
        other = "columns" if drop == "rows" else "rows"
        raise InputError(
            f"{dataset.source}: all {drop} have a NaN or an infinity, so none would be left. "
            f"Drop {other} instead, or fill the gaps."
        )
    if drop == "rows":
        before = np.arange(len(X)) if dataset.positions is None else dataset.positions
        return replace(dataset, X=X[keep], positions=before[keep])
    names = dataset.columns or tuple(str(j + 1) for j in range(X.shape[1]))
    lost = tuple(name for j, name in enumerate(names) if j not in set(keep.tolist()))
    return replace(
        dataset,
        X=X[:, keep],
        columns=tuple(names[j] for j in keep),
        counts=counts._replace(dropped_columns=(*counts.dropped_columns, *lost)),
    )
