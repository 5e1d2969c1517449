"""The equations between the columns of a table, for a summary: relations, and constant columns.

A column that is exactly constant in most rows is the finest structure of a table, and hides
relations with noise. So the other columns are fitted alone, and the confidence in relations is that
of this fit.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from perpend.cli._model import build, fit_model
from perpend.cli._options import Method
from perpend.cli._scaling import joined, standardised

if TYPE_CHECKING:
    from perpend.formats import Dataset

ROWS = 20_000  # that tell the noise of each equation
MOST = 8  # relations that one can read
MEDIUM = 0.5  # below this confidence a relation is a guess
ROUNDS = 5  # of fits without constant columns, each of which may show further ones


@dataclass(frozen=True)
class FoundEquations:
    """The equations of a table, as text, and its nearly constant columns."""

    relations: list[str] | None = None  # None if they were not looked for
    constants: list[str] = field(default_factory=list)
    quiet: tuple[int, ...] = ()  # the places of these columns
    confidence: float = 0.0
    others: dict[str, Any] | None = None  # about a fit without them

    @property
    def shown(self) -> list[str]:
        """Relations for a summary, where they are few enough to be read and more than a guess."""
        own = {"relations": self.relations, "confidence": self.confidence}
        of: dict[str, Any] = self.others or own
        found: list[str] = of["relations"] or []
        return found if len(found) <= MOST and of["confidence"] >= MEDIUM else []


def found_equations(whole: Any, data: "Dataset") -> FoundEquations:
    """Return the equations of a model or pipeline about a table."""
    from perpend._pipelines import opened
    from perpend.exceptions import InputError
    from perpend.relations import equations_apart
    from perpend.report._words import column_labels

    model, (n, D) = opened(whole).model, data.X.shape
    if data.kind != "table" or model.codimension_ == 0:
        return FoundEquations()
    names = column_labels(data.columns or range(1, D + 1))
    if len(set(names)) < D:
        names = [f"{name} ({j + 1})" for j, name in enumerate(names)]
    try:
        relations, constants = equations_apart(whole, names, data.X[:: -(-n // ROWS)])
    except InputError:  # no inlier among these rows
        return FoundEquations()
    return FoundEquations(
        None if relations is None else [one.text for one in relations],
        [one.text.removesuffix(" ± 0") for one in constants],
        tuple(names.index(one.column) for one in constants),
        model.confidence_,
    )


def with_others(found: FoundEquations, how: Method, data: "Dataset") -> FoundEquations:
    """Fit the columns that are not nearly constant, unless the codimension was given."""
    if how.codimension != "auto" or how.n_components is not None:
        return found
    part, quiet, constants, others = data, found.quiet, list(found.constants), None
    for _ in range(ROUNDS):
        kept = [j for j in range(part.X.shape[1]) if j not in quiet]
        if not quiet or len(kept) < 2:
            break
        names = part.columns or tuple(str(j + 1) for j in range(part.X.shape[1]))
        part = replace(part, X=part.X[:, kept], columns=tuple(names[j] for j in kept))
        model = build(how, part)
        scaler, seen = standardised(how, part)
        fit_model(model, seen)
        more = found_equations(joined(scaler, model), part)
        quiet = more.quiet
        constants += more.constants
        others = {
            "columns": len(kept) - len(quiet),
            "codimension": model.codimension_ - len(quiet),
            "confidence": model.confidence_,
            "relations": [] if model.codimension_ == 0 else more.relations,
        }
    return replace(found, constants=constants, others=None if quiet else others)
