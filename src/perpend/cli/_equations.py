"""The equations between the columns of a table, for a summary: relations, and constant columns."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perpend.formats import Dataset

ROWS = 20_000  # that tell the noise of each equation
MOST = 8  # relations that one can read


@dataclass(frozen=True)
class FoundEquations:
    """What the codimension of a table counts: relations between columns, and constant columns."""

    n_relations: int = 0
    relations: list[str] | None = None  # None if they were not looked for
    constants: list[str] = field(default_factory=list)

    @property
    def shown(self) -> list[str]:
        """Relations for a summary, where they are few enough to be read."""
        return self.relations or [] if self.n_relations <= MOST else []

    @property
    def count(self) -> str:
        """How many relations there are, in words."""
        n = self.n_relations
        return f"{n or 'no'} relation{'' if n == 1 else 's'} between columns"


def found_equations(whole: Any, data: "Dataset") -> FoundEquations:
    """Return the equations of a model or pipeline about a table."""
    from perpend._pipelines import opened
    from perpend.exceptions import InputError
    from perpend.relations import equations_apart
    from perpend.report._words import column_labels

    c, (n, D) = opened(whole).model.codimension_, data.X.shape
    if data.kind != "table" or c == 0:
        return FoundEquations()
    names = column_labels(data.columns or range(1, D + 1))
    if len(set(names)) < D:
        names = [f"{name} ({j + 1})" for j, name in enumerate(names)]
    try:
        relations, constants = equations_apart(whole, names, data.X[:: -(-n // ROWS)])
    except InputError:  # no inlier among these rows
        return FoundEquations(c)
    return FoundEquations(
        c - len(constants),
        None if relations is None else [one.text for one in relations],
        [one.text.removesuffix(" ± 0") for one in constants],
    )
