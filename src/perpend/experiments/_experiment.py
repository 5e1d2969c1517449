"""What an experiment is: the interface between the frame and the files that hold the experiments.

An experiment is a list of cases, a function that computes one of them, and two functions of nothing
but the stored rows: one draws, one sums up. The frame does the rest: processes, checkpoints, files,
the time left. Quick and full runs differ only in the cases.

This module is light: it loads NumPy only for a column.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, SupportsFloat, TypeAlias

from perpend._typing import Array

Case: TypeAlias = dict[str, Any]
"""What is computed, completely: parameters, sizes, seed. JSON-able."""

Row: TypeAlias = dict[str, Any]
"""One line of a table: numbers, booleans, strings or None under the names of the columns."""

Tables: TypeAlias = dict[str, list[Row]]
"""Rows by the name of their table; rows of equal names from all cases are put together."""


@dataclass(frozen=True)
class Settings:
    """What the user chose.

    Attributes
    ----------
    quick : bool
        Small sizes, under a minute on two cores, by the same code.
    seeds : int, optional
        Trials at each point; by default the experiment's own number.
    scene : path, optional
        A scene of the user's own (hyperspectral only).
    variable : str, optional
        Which array of the scene's file, if it holds several.
    """

    quick: bool = False
    seeds: int | None = None
    scene: Path | None = None
    variable: str | None = None


@dataclass(frozen=True)
class Results:
    """What is stored of an experiment, and all that drawings and pages are made of.

    Floats have 6 significant digits, as in the file; NaN and infinities are stored as None.

    Attributes
    ----------
    experiment : str
    quick : bool
    tables : dict of lists of dicts
        The rows by table, in the order of the cases.
    seconds : float
        The time that all cases took together, each on one core.
    versions : dict
        Of python, numpy, scipy, scikit-learn and perpend.
    wall_seconds : float
        How long the last run took; cases from earlier runs took no time in it.
    n_cases : int
    settings : dict
        ``quick``, ``seeds`` and ``scene`` (the name of its file), as the user gave them.
    cpu : str
        The model of the processor.
    digest : str
        Checksum of the version and all cases, "" if the results are to be computed anew.
    """

    experiment: str
    quick: bool
    tables: Tables
    seconds: float
    versions: dict[str, str]
    wall_seconds: float = 0.0
    n_cases: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    cpu: str = ""
    digest: str = ""

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


def select(rows: list[Row], **where: Any) -> list[Row]:
    """Return the rows whose columns equal the given values."""
    return [row for row in rows if all(row[name] == value for name, value in where.items())]


def grouped(rows: list[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows by the values of some columns, in the order of their first appearance.

    >>> grouped([{"a": 3, "b": 1}, {"a": 1, "b": 2}, {"a": 3, "b": 3}], "a")
    {(3,): [{'a': 3, 'b': 1}, {'a': 3, 'b': 3}], (1,): [{'a': 1, 'b': 2}]}
    """
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def percent(share: SupportsFloat) -> str:
    """Return a share as a percentage; only all and nothing are written as such.

    >>> percent(1.0), percent(0.996), percent(0.5), percent(0.9999), percent(0.0001)
    ('100 %', '99.6 %', '50 %', '99.9 %', '0.1 %')
    """
    value = round(100 * float(share), 6)
    if value.is_integer():
        return f"{value:.0f} %"
    return f"{min(max(round(value, 1), 0.1), 99.9):.1f} %"


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper, or a study of our own.

    Attributes
    ----------
    name : str
        What follows the command, such as ``"phase-transition"``.
    title : str
        Heading of its page.
    about : str
        One line for ``perpend reproduce list``.
    cases : callable
        ``cases(settings)`` returns what is to be computed. Raises InputError, for instance for a
        scene that cannot be used, before any work. More seeds must only add cases.
    run : callable
        ``run(case)`` computes one of them, in a worker process with one BLAS thread. It depends
        on nothing but the case.
    draw : callable
        ``draw(results)`` returns matplotlib figures by the stem of their file's name.
    summary : callable
        ``summary(results)`` returns the table that the command prints: rows of strings, all with
        the same columns.
    cost : callable
        ``cost(case)`` is the relative time of a case, for the time left.
    """

    name: str
    title: str
    about: str
    cases: Callable[[Settings], list[Case]]
    run: Callable[[Case], Tables]
    draw: Callable[[Results], dict[str, Any]]
    summary: Callable[[Results], list[dict[str, str]]] = lambda _: []
    cost: Callable[[Case], float] = lambda _: 1.0
