"""What to try next: a few steps that fit this answer, each with the command or the code for it."""

import shlex
from typing import NamedTuple

from perpend.report._facts import Facts
from perpend.report._nouns import nouns
from perpend.report._words import CLEAR_ORIGIN, MISFIT, structure_words

FAR_FROM_ORIGIN = 1.0  # radii of the rows' cloud between its centre and the origin
FEW_ROWS = 10  # for each column
STRUCTURED = 20  # outliers from which on a pattern among them is worth a look
MANY = 0.1  # share of outliers from which on they may be worth it even beside a sure answer


class Step(NamedTuple):
    """Something to try: why, and how."""

    why: str
    how: str


def next_steps(facts: Facts) -> list[Step]:
    """Return what would help most, first things first."""
    doubtful = not facts["answer"]["sure"] or facts["answer"]["codimension"] == 0
    steps = [*_mend(facts), *(_look_closer(facts) if doubtful else [])]
    return [*steps, *_others(facts), *_use(facts)]


def _file(facts: Facts) -> str:
    return facts["data"]["name"] or "YOUR_FILE"


def _fit(facts: Facts, rows: str = "X", **changes: object) -> str:
    """Return the code of this fit with some settings changed; the others stay as they were."""
    method = facts["answer"]["method"]
    settings = _settings(facts) | {key: repr(value) for key, value in changes.items()}
    arguments = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"from perpend import {method}\n\nmodel = {method}({arguments}).fit({rows})"


def _settings(facts: Facts) -> dict[str, str]:
    """Return the arguments, as code, that make the answer another one."""
    answer = facts["answer"]
    asked, settings = answer["parameters"], {}
    if answer["told"]:
        settings["codimension"] = str(answer["codimension"])
    if asked.get("affine") in ("True", "auto"):
        settings["affine"] = "True" if asked["affine"] == "True" else '"auto"'
    if asked.get("normalize") == "False":
        settings["normalize"] = "False"
    return settings


def _command(facts: Facts, name: str, **changes: str) -> str:
    """Return the command for the same file with the same settings, as far as it has options."""
    settings = _settings(facts) | changes
    words = ["perpend", name, shlex.quote(_file(facts))]
    if name == "fit":
        words += ["-o RESULTS"]
        method = facts["answer"]["method"]
        words += [f"--method {method}"] if method != "DPCP" else []
    if "codimension" in settings:
        words.append(f"--codimension {settings['codimension']}")
    affine = settings.get("affine", "False")  # the command line's own default is not Python's
    words.append("--affine " + {"True": "yes", "False": "no"}.get(affine, "auto"))
    if name == "fit" and "normalize" in settings:
        words.append("--no-normalize")
    return " ".join(words)


def _mend(facts: Facts) -> list[Step]:
    """Return steps that follow from the evidence."""
    answer, data = facts["answer"], facts["data"]
    evidence, steps = answer["evidence"], []
    off = data["off_origin"]
    chance = evidence.get("origin_chance")
    misses = chance is not None and chance < CLEAR_ORIGIN
    far = off is not None and off > FAR_FROM_ORIGIN and not answer["sure"]
    tried = answer["parameters"].get("affine") == "auto"
    if not answer["affine"] and not tried and (misses or far):
        why = (
            f"The {nouns(facts).rows} lie away from the origin, and a linear subspace must pass "
            "through it. Let the subspace be anywhere:"
        )
        command = _command(facts, "fit", affine="True")
        code = _fit(facts, affine=True, random_state=0)
        steps.append(Step(why, f"{command}\n\n{code}"))
    if evidence.get("directions_saturated") and not answer["sure"]:
        why = "As many normals as starts were found, so there may be more. Use more starts:"
        steps.append(Step(why, _fit(facts, n_starts=4 * answer["n_starts"], random_state=0)))
    if not answer["converged"]:
        why = "The descents did not come to rest. Allow more iterations:"
        steps.append(Step(why, _fit(facts, max_iter=10 * answer["n_iter"], random_state=0)))
    if "exact_codimension" in evidence:
        larger = str(evidence["exact_codimension"])
        why = (
            f"All {nouns(facts).rows} lie exactly on a larger subspace, and on this one only up to "
            "noise, which may be their shape. Ask for the larger one:"
        )
        command = _command(facts, "fit", codimension=larger)
        code = _fit(facts, codimension=int(larger), random_state=0)
        steps.append(Step(why, f"{command}\n\n{code}"))
    if "rows_on_smaller" in evidence:
        why = (
            f"{evidence['rows_on_smaller']} {nouns(facts).rows} lie on a smaller subspace inside "
            "this one, which may be the sum of two. Find them one by one:"
        )
        steps.append(Step(why, _peel(facts)))
    elif _worth_peeling(facts):
        why = "The outliers have a pattern of their own. Look for further subspaces among them:"
        steps.append(Step(why, _peel(facts)))
    return steps


def _worth_peeling(facts: Facts) -> bool:
    answer = facts["answer"]
    misfit = answer["evidence"].get("outlier_misfit") or 0.0
    few = answer["outliers"] < MANY * facts["data"]["n_rows"]
    return misfit > MISFIT and answer["outliers"] >= STRUCTURED and not (few and answer["sure"])


def _peel(facts: Facts) -> str:
    """Return the code; `peel` finds linear subspaces only, affine ones by a column of ones."""
    if not facts["answer"]["affine"]:
        return "from perpend import peel\n\nprint(peel(X, random_state=0).summary())"
    return (
        "import numpy as np\nfrom perpend import peel\n\n"
        "rows = np.c_[X, np.ones(len(X))]  # an affine subspace of X is a linear one of these\n"
        "print(peel(rows, random_state=0).summary())"
    )


def _look_closer(facts: Facts) -> list[Step]:
    """Return steps for an answer that is not sure."""
    data, say, steps = facts["data"], nouns(facts), []
    if data["n_rows"] < FEW_ROWS * data["n_columns"]:
        why = (
            f"There are {data['n_rows']} {say.rows} for {data['n_columns']} {say.columns}. More "
            f"{say.rows}, or fewer {say.columns}, say more than any setting. With the "
            f"{say.columns} that belong together:"
        )
        steps.append(Step(why, _fit(facts, "X[:, columns]", random_state=0)))
    why = f"See what other methods make of the same {say.rows}, side by side:"
    steps.append(Step(why, _command(facts, "compare")))
    why = "Another seed takes other random starts. A good answer does not depend on it:"
    steps.append(Step(why, _fit(facts, random_state=1)))
    return steps


def _others(facts: Facts) -> list[Step]:
    """Return how to get the structures that are not the answer."""
    words = structure_words(facts)
    others = [
        f"model.choose({i})  # {words.structure(one)}"
        for i, one in enumerate(facts["answer"]["structures"])
        if not one["chosen"]
    ]
    if not others:
        return []
    why = f"Other structures were seen in these {nouns(facts).rows}. Each is a model of its own:"
    code = 'import perpend\n\nmodel = perpend.load("model.npz")\n'
    return [Step(why, code + "\n".join(others))]


def _use(facts: Facts) -> list[Step]:
    """Return ways to use the model."""
    if facts["answer"]["codimension"] == 0:
        return []
    threshold = 2 * facts["answer"]["threshold"]
    return [
        Step(
            f"Label new {nouns(facts).rows} with this model, from a shell or in Python:",
            "perpend apply model.npz NEW_FILE -o LABELLED\n"
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
