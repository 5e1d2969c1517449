"""What an experiment is: the interface between the frame and the files that hold the experiments.

An experiment is a list of cases, a function that computes one of them, and two functions of nothing
but the stored rows: one draws, one sums up. The frame does the rest: processes, checkpoints, files,
the time left. Quick and full runs differ only in the cases.

This module is light: it loads NumPy only for a column.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from perpend._typing import Array

Case: TypeAlias = dict[str, Any]
"""What is computed, completely: parameters, sizes, seed. JSON-able."""

Row: TypeAlias = dict[str, Any]
"""One line of a table: numbers, booleans, strings or None under the names of the columns."""

Tables: TypeAlias = dict[str, list[Row]]
"""Rows by the name of their table; rows of equal names from all cases are put together."""


@dataclass(frozen=True)
class Settings:
    """What the user chose."""

    quick: bool = False  # small sizes, under a minute on two cores, by the same code
    seeds: int | None = None  # trials at each point, if not the experiment's own number
    scene: Path | None = None  # of the user's own (hyperspectral only)
    variable: str | None = None  # which array of the scene's file, if it holds several


@dataclass(frozen=True)
class Results:
    """What is stored of an experiment, and all that drawings and pages are made of.

    Floats have 6 significant digits, as in the file; NaN and infinities are stored as None.
    """

    experiment: str
    quick: bool
    tables: Tables  # rows in the order of the cases
    seconds: float  # that all cases took together, each on one core
    versions: dict[str, str]  # of python, numpy, scipy, scikit-learn and perpend
    wall_seconds: float = 0.0  # of the last run; cases from earlier runs took no time in it
    n_cases: int = 0
    settings: dict[str, Any] = field(default_factory=dict)  # quick, seeds, name of the scene's file
    cpu: str = ""  # the model
    digest: str = ""  # checksum of version and cases; none: the results are to be computed anew

    def rows(self, table: str, **where: Any) -> list[Row]:
        """Return the rows of a table whose columns equal the given values.

        A table without rows was never stored, so it is empty rather than an error.

        >>> results = Results("toy", True, {"t": [{"a": 1, "b": 2}, {"a": 3, "b": 4}]}, 0.0, {})
        >>> results.rows("t", a=3)
        [{'a': 3, 'b': 4}]
        """
        return select(self.tables.get(table, []), **where)

    def column(self, table: str, name: str, **where: Any) -> Array:
        """Return one column of these rows as a NumPy array; what is missing becomes NaN.

        >>> results = Results("toy", True, {"t": [{"a": 1, "b": 2}, {"a": 3, "b": None}]}, 0.0, {})
        >>> results.column("t", "b")
        array([ 2., nan])
        """
        import numpy as np

        values = [row[name] for row in self.rows(table, **where)]
        if None in values and not any(isinstance(value, str) for value in values):
            return np.array([np.nan if value is None else value for value in values], dtype=float)
        return np.array(values)

    def values(self, table: str, name: str) -> list[Any]:
        """Return the distinct values of a column in the order of their first appearance.

        >>> Results("toy", True, {"t": [{"a": 3}, {"a": 1}, {"a": 3}]}, 0.0, {}).values("t", "a")
        [3, 1]
        """
        return list(dict.fromkeys(row[name] for row in self.rows(table)))

    def groups(self, table: str, *names: str, **where: Any) -> dict[tuple[Any, ...], list[Row]]:
        """Return these rows by the values of some columns, in the order of first appearance.

        >>> Results("toy", True, {"t": [{"a": 3}, {"a": 1}]}, 0.0, {}).groups("t", "a")
        {(3,): [{'a': 3}], (1,): [{'a': 1}]}
        """
        found: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.rows(table, **where):
            found.setdefault(tuple(row[name] for name in names), []).append(row)
        return found


def select(rows: list[Row], **where: Any) -> list[Row]:
    """Return the rows whose columns equal the given values."""
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper, or a study of our own.

    `cases` raises InputError, for instance for a scene that cannot be used, before any work; more
    seeds must only add cases. `run` is called in a worker process with one BLAS thread, and depends
    on nothing but the case.
    """

    name: str  # what follows the command, such as "phase-transition"
    title: str  # of its page
    about: str  # one line for ``perpend reproduce list``
    cases: Callable[[Settings], list[Case]]  # what is to be computed
    run: Callable[[Case], Tables]  # computes one case
    draw: Callable[[Results], dict[str, Any]]  # matplotlib figures by the stem of their file's name
    summary: Callable[[Results], list[dict[str, str]]] = lambda _: []  # table for the terminal
    cost: Callable[[Case], float] = lambda _: 1.0  # relative time of a case
