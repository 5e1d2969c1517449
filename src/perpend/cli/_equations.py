"""The equations between the columns of a table, for a summary: relations, and constant columns.

A column that is exactly constant in most rows is the finest structure of a table, and hides
relations with noise. So the other columns are fitted alone, and the confidence in relations is that
of this fit. If it has relations that the first fit has not, it is the result.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from perpend.cli._columns import NEARLY, without_columns
from perpend.cli._model import build, fit_model
from perpend.cli._options import Method
from perpend.cli._scaling import joined, standardised

if TYPE_CHECKING:
    from perpend.formats import Dataset

ROWS = 20_000  # that tell the noise of each equation
MOST_RELATIONS = 8  # that one can read,
MOST_LETTERS = 240  # with this many letters each: three lines of a terminal
MEDIUM = 0.5  # below this confidence a relation is a guess
ROUNDS = 5  # of fits without constant columns, each of which may show further ones


@dataclass(frozen=True)
class Fit:
    """A fitted model, and the rows that it was fitted to."""

    model: Any
    data: "Dataset"  # in the data's own units
    seen: "Dataset"  # as the model sees them
    scaler: Any
    remarks: list[str]

    @property
    def whole(self) -> Any:
        """The pipeline, or the model alone."""
        return joined(self.scaler, self.model)


def fitted(how: Method, data: "Dataset", missing: str) -> Fit:
    """Fit a table in memory."""
    model = build(how, data)
    model.set_params(missing=missing)
    scaler, seen = standardised(how, data)
    return Fit(model, data, seen, scaler, fit_model(model, seen))


@dataclass(frozen=True)
class FoundEquations:
    """The equations of a table, as text, and its nearly constant columns."""

    relations: list[str] | None = None  # None if they were not looked for
    constants: list[str] = field(default_factory=list)
    quiet: tuple[int, ...] = ()  # the places of these columns
    confidence: float = 0.0
    others: dict[str, Any] | None = None  # about a fit without them
    alone: Fit | None = None  # this fit
    left_out: bool = False  # whether it is the result

    @property
    def shown(self) -> list[str]:
        """Relations for a summary, where they are few enough to be read and more than a guess."""
        own = {"relations": self.relations, "confidence": self.confidence}
        of: dict[str, Any] = self.others or own
        found: list[str] = of["relations"] or []
        readable = len(found) <= MOST_RELATIONS and all(len(text) <= MOST_LETTERS for text in found)
        return found if readable and of["confidence"] >= MEDIUM else []


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


def with_others(found: FoundEquations, how: Method, first: Fit) -> FoundEquations:
    """Fit the columns that are not nearly constant, unless the codimension was given."""
    if how.codimension != "auto" or how.n_components is not None:
        return found
    fit, quiet, constants, others = first, found.quiet, list(found.constants), None
    for _ in range(ROUNDS):
        if not quiet or fit.data.X.shape[1] - len(quiet) < 2:
            break
        part, kept = without_columns(fit.data, {NEARLY: list(quiet)})
        fit = fitted(how, replace(part, X=fit.data.X[:, kept]), first.model.missing)
        more = found_equations(fit.whole, fit.data)
        quiet = more.quiet
        constants += more.constants
        others = {
            "columns": len(kept) - len(quiet),
            "codimension": fit.model.codimension_ - len(quiet),
            "confidence": fit.model.confidence_,
            "relations": [] if fit.model.codimension_ == 0 else more.relations,
        }
    if quiet or others is None:
        return replace(found, constants=constants)
    return replace(found, constants=constants, others=others, alone=fit)


def explained(fit: Fit, how: Method, *, leave_out: bool) -> tuple[FoundEquations, Fit]:
    """Return the equations of a fit, and the fit that is the result: this one, or of other columns.

    Unless nearly constant columns may be left out, a remark says what they hide.
    """
    found = with_others(found_equations(fit.whole, fit.data), how, fit)
    if not _hides_relations(found, fit.model):
        return found, fit
    if not leave_out:
        return found, replace(fit, remarks=[*fit.remarks, _advice(found.constants)])
    assert found.alone is not None
    assert found.others is not None
    new = replace(found, relations=found.others["relations"], quiet=(), left_out=True)
    return replace(new, confidence=found.others["confidence"]), found.alone


def _hides_relations(found: FoundEquations, model: Any) -> bool:
    """Whether the other columns have more relations, and labels do not know of them.

    With ``outliers="both"`` labels are those of all directions, whatever the subspace is.
    """
    from perpend.structure.constants import SURE

    return (
        found.others is not None
        and found.others["relations"] != []  # None: not looked for
        and found.others["confidence"] >= SURE
        and found.others["codimension"] > model.codimension_ - len(found.quiet)
        and model.outliers != "both"
    )


def _advice(constants: list[str]) -> str:
    names, one = ", ".join(constants), len(constants) == 1
    return (
        f"the labels follow the nearly constant column{'' if one else 's'} ({names}), which "
        f"hide{'s' if one else ''} relations between the others. Leave {'it' if one else 'them'} "
        "out, for example by --exclude."
    )
