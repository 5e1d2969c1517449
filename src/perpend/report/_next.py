"""What to try next: a few steps that fit this answer, each with the command or the code for it."""

import shlex
from typing import NamedTuple

from perpend.report._facts import Facts
from perpend.report._words import MISFIT

FAR_FROM_ORIGIN = 1.0  # radii of the rows' cloud between its centre and the origin
FEW_ROWS = 10  # for each column
STRUCTURED = 20  # outliers from which on a pattern among them is worth a look


class Step(NamedTuple):
    """Something to try: why, and how."""

    why: str
    how: str


def next_steps(facts: Facts) -> list[Step]:
    """Return what would help most, first things first."""
    doubtful = not facts["answer"]["sure"] or facts["answer"]["codimension"] == 0
    steps = [*_mend(facts), *(_look_closer(facts) if doubtful else [])]
    return [*steps, *_use(facts)]


def _file(facts: Facts) -> str:
    return facts["data"]["name"] or "YOUR_FILE"


def _fit(facts: Facts, rows: str = "X", **changes: object) -> str:
    method = facts["answer"]["method"]
    arguments = ", ".join(f"{key}={value!r}" for key, value in changes.items())
    return f"from perpend import {method}\n\nmodel = {method}({arguments}).fit({rows})"


def _mend(facts: Facts) -> list[Step]:
    """Return steps that follow from the evidence."""
    answer, data = facts["answer"], facts["data"]
    evidence, steps = answer["evidence"], []
    off = data["off_origin"]
    misses = "origin_chance" in evidence and (evidence["origin_chance"] or 0.0) < 1e-6
    if not answer["affine"] and (misses or (off is not None and off > FAR_FROM_ORIGIN)):
        why = (
            "The rows lie away from the origin, and a linear subspace must pass through it. Let the "
            "subspace be anywhere:"
        )
        steps.append(Step(why, _fit(facts, affine=True, random_state=0)))
    if evidence.get("directions_saturated") and not answer["sure"]:
        why = "As many normals as starts were found, so there may be more. Use more starts:"
        steps.append(Step(why, _fit(facts, n_starts=4 * answer["n_starts"], random_state=0)))
    if not answer["converged"]:
        why = "The descents did not come to rest. Allow more iterations:"
        steps.append(Step(why, _fit(facts, max_iter=10 * answer["n_iter"], random_state=0)))
    misfit = evidence.get("outlier_misfit") or 0.0
    if misfit > MISFIT and answer["outliers"] >= STRUCTURED:
        why = "The outliers have a pattern of their own. Look for further subspaces among them:"
        how = "from perpend import peel\n\nprint(peel(X, random_state=0).summary())"
        steps.append(Step(why, how))
    return steps


def _look_closer(facts: Facts) -> list[Step]:
    """Return steps for an answer that is not sure."""
    data, steps = facts["data"], []
    if data["n_rows"] < FEW_ROWS * data["n_columns"]:
        why = (
            f"There are {data['n_rows']} rows for {data['n_columns']} columns. More rows, or fewer "
            "columns, say more than any setting. With the columns that belong together:"
        )
        steps.append(Step(why, _fit(facts, "X[:, columns]", random_state=0)))
    why = "See what other methods make of the same rows, side by side:"
    steps.append(Step(why, f"perpend compare {shlex.quote(_file(facts))}"))
    why = "Another seed takes other random starts. A good answer does not depend on it:"
    steps.append(Step(why, _fit(facts, random_state=1)))
    return steps


def _use(facts: Facts) -> list[Step]:
    """Return ways to use the model."""
    if facts["answer"]["codimension"] == 0:
        return []
    threshold = 2 * facts["answer"]["threshold"]
    return [
        Step(
            "Label new rows with this model, from a shell or in Python:",
            "perpend apply model.npz NEW_FILE\n"
            '\nimport perpend\n\nmodel = perpend.load("model.npz")\nlabels = model.predict(X_new)',
        ),
        Step(
            "Stricter or more lenient labels need no new fit; other distances, coordinates in the "
            "subspace and reasons are there, too:",
            f"model.predict(X, threshold={threshold:.3g})  # twice the threshold\n"
            "model.transform(X)  # coordinates in the subspace\n"
            "model.explain(X)  # share of each column in each row's distance",
        ),
    ]
