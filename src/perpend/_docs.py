"""What parameters and attributes mean, written once for all methods: in ``_docs.rst`` beside this.

A method's docstring says what is its own. `completed` adds what it leaves out: every other
parameter of its signature, in that order, and every other attribute. `completed_function` does the
same for its functional form.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any, TypeVar

Thing = TypeVar("Thing")

SECTION = re.compile(r"^(?=\S[^\n]*\n-{3,}$)", re.MULTILINE)  # where one begins

EVIDENCE = {
    "inlier_spectrum": "second moments of the inliers along their principal axes in the span of "
    "the rows, ascending; about their mean if affine",
    "inlier_gap": "ratio of two neighbours in that spectrum, from across to along the subspace",
    "inlier_gap_runner_up": "the largest such ratio elsewhere",
    "inlier_share": "share of the rows that are inliers, by the two-group model",
    "rows_on_subspace": "rows up to the threshold; equal rows count once",
    "rows_on_any_subspace": "rows that always lie on some subspace of this dimension",
    "rows_on_smaller": "rows on a smaller subspace inside, if there may be one",
    "gain": "logarithm of how much likelier the rows are with the subspace",
    "gain_needed": "the gain that chance alone reaches",
    "plateau_length": "logarithm of the range of scales over which it is seen",
    "plateau_clearness": "how far it is ahead of other codimensions; at least 1 is clear",
    "ellipse_evidence": "evidence against a single elliptical cloud (logarithm)",
    "ellipse_gap": "gap in the axes of that cloud",
    "exact_codimension": "codimension of a larger subspace on which all rows lie exactly",
    "outlier_misfit": "how far the outliers' distances are from those of random directions; "
    "above 2 in one of a thousand cases by chance",
    "rank": "dimension of the span of the rows, if no subspace inside it was found",
    "directions_rank": "codimension by the directions that the descents found",
    "directions_gap": "ratio of their singular values there",
    "directions_saturated": "whether there were too few descents to see the rank",
    "objective_rise": "by how much the objective rises beyond the rank",
    "objective_per_direction": "objective of each principal direction",
    "affine_confidence": "confidence of the affine subspace, with `affine`",
    "affine_codimension": "its codimension",
    "origin_distance": "how far it is from the origin",
    "origin_error": "standard error of that, in each coordinate",
    "origin_chance": "probability of that distance if the subspace passes through the origin",
}
"""Every key of `evidence_`, in order."""


def _sections(doc: str) -> dict[str, str]:
    """Return the sections of a docstring by title; what stands before them has none."""
    head, *rest = SECTION.split(inspect.cleandoc(doc))
    return {"": head, **{text.partition("\n")[0]: text for text in rest}}


def _entries(section: str) -> dict[str, str]:
    """Return the entries of a section by name, each with its indented lines."""
    body = section.partition("---\n")[2]
    entries = [entry.rstrip() + "\n" for entry in re.split(r"^(?=\S)", body, flags=re.MULTILINE)]
    return {re.split(" :|\n", entry)[0]: entry for entry in entries if entry.strip()}


SHARED = _sections(
    Path(__file__)
    .with_suffix(".rst")
    .read_text(encoding="utf-8")
    .replace("{evidence}", "\n    ".join(f'- "{key}": {text}' for key, text in EVIDENCE.items()))
)
PARAMETERS, ATTRIBUTES = _entries(SHARED["Parameters"]), _entries(SHARED["Attributes"])
OF_FUNCTION = _entries(SHARED["Functions"])
"""What only the functional forms take."""
OF_ROWS = {
    "X": "array-like of shape (n_samples, n_features)",
    "y": "ignored",
    "groups": "array-like of shape (n_samples,), optional\nRows with the same id are inliers or "
    "outliers together, as in `fit`.",
    "return Self": "self : object\n    The fitted estimator.",
}
"""What methods of a class take and return that are about rows, for `complete`."""
OF_TENSORS = OF_ROWS | {"X": OF_ROWS["X"].replace("array-like", "array-like or torch tensor")}
"""The same where they may be tensors."""


def completed(cls: type[Any], attributes: Iterable[str] | None = None) -> str | None:
    """Return the docstring of a method with what all methods share.

    All have the same attributes, unless some are named: then those of its own come first.
    """
    if vars(cls).get("__doc__") is None:  # it has none, or python -OO took it
        return None
    sections, parameters = _sections(cls.__doc__ or ""), inspect.signature(cls).parameters
    shared = {
        "Parameters": {
            name: PARAMETERS.get(name, "").replace("{default}", repr(one.default).replace("'", '"'))
            for name, one in parameters.items()
        },
        "Attributes": ATTRIBUTES,
    }
    if attributes is not None:
        own = _entries(sections.get("Attributes", ""))
        shared["Attributes"] = own | {name: ATTRIBUTES[name] for name in attributes}
    parts = [sections.pop("")]
    for title, texts in shared.items():
        own = _entries(sections.pop(title, ""))
        entries = [own.get(name, text) for name, text in texts.items()]
        parts.append(f"{title}\n{'-' * len(title)}\n{''.join(entries)}")
    return "\n\n".join(part.strip() for part in (*parts, *sections.values())) + "\n"


def completed_function(function: Callable[..., Any], owner: str) -> str | None:
    """Return the docstring of a method as a function, whose parameters are those of its class."""
    doc = inspect.getdoc(function)
    if doc is None or "\nParameters\n" in doc:
        return doc
    names = [name for name in inspect.signature(function).parameters if name not in OF_FUNCTION]
    same = f"{', '.join(names)}\n    As in `{owner}`.\n"
    text = OF_FUNCTION["rows"] + same + OF_FUNCTION["rng"]
    return f"{doc}\n\nParameters\n----------\n{text}\nReturns\n-------\nSolution\n"


def complete(things: Iterable[Any], shared: Mapping[str, str]) -> None:
    """Add what they leave out to the docstrings of functions and of the methods of classes.

    `shared` says what the parameters of a name are, and, under "return TYPE", what is returned.
    """
    for thing in things:
        members = vars(thing).items() if inspect.isclass(thing) else [("", thing)]
        for name, member in members:
            function = getattr(member, "__func__", member)  # of a class method
            if inspect.isfunction(function) and not name.startswith("_") and function.__doc__:
                function.__doc__ = member.__doc__ = _complete(function, shared)


def explained(shared: Mapping[str, str]) -> Callable[[Thing], Thing]:
    """Complete the docstrings of a class or function, as `complete` does."""

    def completing(thing: Thing) -> Thing:
        complete((thing,), shared)
        return thing

    return completing


def _complete(function: Any, shared: Mapping[str, str]) -> str:
    """Return the docstring of a function with shared parameters, in the order of its signature."""
    sections = {title: text.strip() for title, text in _sections(function.__doc__).items()}
    signature = inspect.signature(function)
    own = _entries(sections.pop("Parameters", ""))
    entries: dict[str, str] = {}
    for name in signature.parameters:
        among = next((names for names in own if name in re.split(r"\W+", names)), None)
        if among is not None:
            entries[among] = own[among]
        elif name in shared:
            kind, _, text = shared[name].partition("\n")
            entries[name] = f"{name} : {kind}\n{indent(text, '    ')}"
    result = getattr(signature.return_annotation, "__name__", None)
    made = {}
    if entries:
        made["Parameters"] = "Parameters\n----------\n" + "".join(entries.values()).strip()
    if result and not sections.keys() & {"Returns", "Yields"}:
        made["Returns"] = f"Returns\n-------\n{shared.get(f'return {result}', result)}"
    return "\n\n".join([sections.pop(""), *(made | sections).values()]) + "\n"
