"""What parameters and attributes mean, written once for all methods.

A method's docstring says what is its own. `completed` adds what it leaves out: every other
parameter of its signature, in that order, and every other attribute. `completed_function` does the
same for its functional form.
"""

import inspect
import re
from collections.abc import Callable
from textwrap import indent
from typing import Any

SECTION = re.compile(r"^(?=\S[^\n]*\n-{3,}$)", re.MULTILINE)  # where one begins

PARAMETERS = {
    "codimension": """int or None, default={default}
Number of normals: features minus dimension of the subspace. Without `n_components` either, it is 1.
""",
    "n_components": """int or None, default={default}
Dimension of the subspace, the same in scikit-learn's word: ``codimension = n_features -
n_components``. Give one of the two at most.
""",
    "step": """{{"auto", "mbls", "geometric", "decay"}} or a step rule, default={default}
How long the steps are. "auto" is scale-free and tunes itself. "mbls" is the modified backtracking
line search of the authors' releases; "geometric" the paper's piecewise geometrically diminishing
rule; "decay" one line search, then a step that shrinks by a constant factor at every iteration. An
object with the methods of `perpend.solvers.StepRule`, as in `perpend.solvers.steps`, brings its own
constants.
""",
    "normalize": """bool, default={default}
Whether rows are scaled to unit norm, so that only their direction counts. Rows that do not have
unit norm are copied once if the copy takes at most 1 GiB; otherwise they are divided block by
block. With `affine`, the rows with the extra coordinate are scaled, and only for the search.
""",
    "affine": """bool or "auto", default={default}
Whether the subspace may miss the origin. True finds an affine subspace, with its location and
directions, wherever the cloud is. It needs one more array of the size of X: the method runs on rows
with one more coordinate, which is 1. "auto" decides: affine if the rows support an affine subspace
that clearly misses the origin, otherwise linear.
""",
    "threshold": """"auto" or float, default={default}
The distance above which a row is an outlier: relative to its norm (the sine of its angle to the
subspace) if `normalize`, otherwise in the data's own units. For an affine subspace always in the
data's own units.
""",
    "contamination": """float in [0, 1) or None, default={default}
The share of outliers, if you know it. It sets the threshold.
""",
    "max_iter": """int, default={default}
Maximum number of iterations.
""",
    "device": """None, str or torch.device, default={default}
Where to compute. None: where the data is, for a torch tensor on its own device. "cuda" moves the
data to the GPU once. Results come back as the kind of array that was given. Tensors and devices
need torch: ``pip install 'perpend[torch]'``.
""",
    "n_jobs": """int or None, default={default}
Number of threads that read rows; -1 uses all processors.
""",
    "random_state": """int, Generator, RandomState or None, default={default}
Seeds what the method draws. The same seed gives the same result.
""",
    "callback": """callable or None, default={default}
Called after every step with a `perpend.solvers.Progress`. If it returns True, that stage ends.
""",
}

FUNCTION = {
    "rows": "RowSource\nFrom `as_rows`.\n",
    "rng": "numpy.random.Generator\nDraws what is random, and tells equal rows apart.\n",
}
"""What only the functional forms take."""

EVIDENCE = {
    "inlier_spectrum": "second moments of the inliers along their principal axes, ascending",
    "inlier_gap": "largest ratio of two neighbours in that spectrum",
    "inlier_gap_runner_up": "second largest ratio",
    "inlier_share": "share of the rows that are inliers, by the two-group model",
    "rows_on_subspace": "rows up to the threshold; equal rows count once",
    "rows_on_any_subspace": "rows that some subspace of this dimension holds anyway",
    "rows_on_smaller": "rows on a smaller subspace inside, if there may be one",
    "gain": "how much likelier the rows are with the subspace, a logarithm",
    "gain_needed": "the gain that chance alone reaches",
    "plateau_length": "range of scales over which it is seen, a logarithm",
    "plateau_clearness": "how far it is ahead of other codimensions; at least 1 is clear",
    "ellipse_evidence": "evidence against a single elliptical cloud, a logarithm",
    "ellipse_gap": "gap in the axes of that cloud",
    "exact_codimension": "codimension of a larger subspace on which all rows lie exactly",
    "outlier_misfit": "how far the outliers' distances are from those of random directions; "
    "above 2 in one of a thousand cases by chance",
    "rank": "dimension of the span of the rows, if no subspace inside it was found",
    "directions_rank": "rank of the directions that the descents found",
    "directions_gap": "ratio of their singular values there",
    "directions_saturated": "whether there were too few descents to see the rank",
    "objective_rise": "by how much the objective rises beyond the rank",
    "objective_per_direction": "objective of each principal direction",
    "affine_confidence": "confidence of the affine subspace, with `affine`",
    "affine_codimension": "its codimension",
    "origin_distance": "how far it is from the origin",
    "origin_error": "standard error of that, in each coordinate",
    "origin_chance": "chance that a subspace through the origin seems this far from it",
}
"""Every key of `evidence_`, in order."""

ATTRIBUTES = {
    "codimension_": "int\n",
    "n_components_": "int\nThe dimension of the subspace.\n",
    "components_": """array of shape (n_components_, n_features)
Orthonormal basis of the subspace: the inliers' principal axes, largest variance first.
""",
    "normals_": """array of shape (codimension_, n_features)
Orthonormal basis of the orthogonal complement.
""",
    "location_": """array of shape (n_features,)
A point of the subspace: the inliers' mean if the subspace is affine, else zero. For an affine
subspace this and `intercept_` are in double precision.
""",
    "intercept_": """array of shape (codimension_,)
The subspace is ``normals_ @ x = intercept_``.
""",
    "affine_": """bool
Whether the subspace is affine. If so, `score_samples`, `threshold_` and `noise_` are Euclidean, in
the data's own units: angles at the origin mean nothing for it.
""",
    "confidence_": """float in [0, 1]
How well the rows support the codimension. It is called sure from 0.95 on.
""",
    "evidence_": """dict
The numbers behind the confidence. It always has the same keys. NaN: not computed.

"""
    + "\n".join(f'- "{key}": {text}' for key, text in EVIDENCE.items())
    + "\n",
    "doubts_": """tuple of str
What makes the result doubtful, and what would help; empty if nothing does. If the codimension was
given, only doubts about noise, groups and rows.
""",
    "directions_": """array of shape (n_starts_, n_features)
The normals as the method found them.
""",
    "singular_values_": "array\nSingular values of `directions_`.\n",
    "n_starts_": "int\nThe number of `directions_`.\n",
    "labels_": "array of shape (n_samples,)\n+1 for inliers, -1 for outliers.\n",
    "threshold_": "float\nThe distance that separates them.\n",
    "offset_": """float
``decision_function(X) = score_samples(X) - offset_``, so it is ``-threshold_``.
""",
    "noise_": """float
Expected norm of the inliers' noise, relative to their norm if `normalize`.
""",
    "structures_": """list of dict
Every significant subspace that was seen, finest first: its `codimension`, `noise` (the standard
deviation along one normal, in the units that decide the labels), number of `members`, `score` (how
much likelier the rows are with it than by chance, a logarithm), `length` (the range of scales over
which it is seen, a logarithm), and whether it is the `chosen` one. A street, for example, is a slab
with a plane inside. `choose` returns any of them.
""",
    "profile_": """dict or None
If the profile of scales was computed: `scales`, in the same units as the noise, `codimensions`, and
the `contrast` (codimensions, scales) that `perpend.plots.ProfileDisplay` draws.
""",
    "objective_": "float\nThe objective of the method, as a mean over the rows.\n",
    "n_iter_": "int\nIterations of the longest descent.\n",
    "converged_": "bool\n",
    "history_": """dict
What happened step by step: `stages` and `n_steps` of every loop. Then, for all steps one after the
other: the mean `objective` over the starts, the `least` and the `largest`, and the `change` that
ends the loop. For descents that is the share of starts that have not converged.
""",
    "n_features_in_": "int\n",
    "feature_names_in_": "array of str\nOnly if X has column names.\n",
}


def completed(cls: type[Any]) -> str | None:
    """Return the docstring of a method with what all methods share."""
    if vars(cls).get("__doc__") is None:  # it has none, or python -OO took it
        return None
    head, *rest = SECTION.split(inspect.cleandoc(cls.__doc__ or ""))
    sections = {text.partition("\n")[0]: text for text in rest}
    parameters = inspect.signature(cls).parameters
    defaults = {name: repr(one.default).replace("'", '"') for name, one in parameters.items()}
    shared = {
        "Parameters": {
            name: PARAMETERS.get(name, "").format(default=default)
            for name, default in defaults.items()
        },
        "Attributes": ATTRIBUTES,
    }
    parts = [head]
    for title, texts in shared.items():
        own = _entries(sections.pop(title, ""))
        entries = [own.get(name) or _entry(name, text) for name, text in texts.items()]
        parts.append(f"{title}\n{'-' * len(title)}\n{''.join(entries)}")
    return "\n\n".join(part.strip() for part in (*parts, *sections.values())) + "\n"


def completed_function(function: Callable[..., Any], owner: str) -> str | None:
    """Return the docstring of a method as a function, whose parameters are those of its class."""
    doc = inspect.getdoc(function)
    if doc is None or "\nParameters\n" in doc:
        return doc
    names = [name for name in inspect.signature(function).parameters if name not in FUNCTION]
    entries = {"rows": FUNCTION["rows"], ", ".join(names): f"\nAs in `{owner}`.\n", **FUNCTION}
    text = "".join(_entry(name, text) for name, text in entries.items())
    return f"{doc}\n\nParameters\n----------\n{text}\nReturns\n-------\nSolution\n"


def _entries(section: str) -> dict[str, str]:
    """Return the entries of a section by name, each with its indented lines."""
    _, *entries = re.split(r"^(?=\w+ :)", section, flags=re.MULTILINE)
    return {entry.partition(" :")[0]: entry.rstrip() + "\n" for entry in entries}


def _entry(name: str, text: str) -> str:
    kind, _, rest = text.partition("\n")
    return f"{name}{f' : {kind}' if kind else ''}\n{indent(rest, '    ')}"
