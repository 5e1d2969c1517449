"""The estimate in words: confidence, doubts, other structures, and the code of other fits."""

import re
import shlex

from perpend._structures import HOLDS_IT, INSIDE_IT, Words
from perpend.plots._words import count, number
from perpend.report._text import Facts, nouns
from perpend.structure import SURE

MEDIUM = 0.5  # below this confidence a codimension is a guess
CLEAR_ORIGIN = 1e-6  # chance below which the subspace clearly misses the origin
LIMITS = {  # for the templates
    "clear_origin": CLEAR_ORIGIN,
    "clear_misfit": 2.0,  # outliers without preferred direction exceed it once in a thousand
    "clear_step": 4.47,  # a step in the variances is clear from this power of all others on
    "far_from_origin": 1.0,  # radii of the rows' cloud between its centre and the origin
    "few_rows": 10,  # for each column
    "structured": 20,  # outliers: from this number on a pattern among them is pointed out,
    "many": 0.1,  # and if the estimate is sure, from this share of the rows on
}
ADVICE_WORDS = re.compile(r"help|show|would give|^(add|centre|look|raise|use)")


def level(confidence: float) -> str:
    """Return the confidence as a word."""
    if confidence >= SURE:
        return "high"
    return "medium" if confidence >= MEDIUM else "low"


def confidence_text(value: float) -> str:
    """Return the confidence as a number, never as 0 or 1.

    >>> confidence_text(0.9999), confidence_text(0.42), confidence_text(0.001)
    ('above 0.99', '0.42', 'below 0.01')
    """
    if value > 0.99:
        return "above 0.99"
    return f"{value:.2f}" if value >= 0.01 else "below 0.01"


def misses_origin(estimate: Facts) -> bool:
    """Say whether the subspace clearly misses the origin."""
    chance = estimate["evidence"].get("origin_chance")
    return chance is not None and chance < CLEAR_ORIGIN


def structure_words(facts: Facts) -> Words:
    """Return how structures are put into words, with the page's numbers."""
    return Words(
        facts["data"]["n_columns"],
        affine=facts["estimate"]["affine"],
        rows=nouns(facts["data"]["kind"], facts["data"]["n_columns"]).rows,
        count=count,
        number=lambda value: number(value, 2),
    )


def inside(facts: Facts) -> str | None:
    """Say which structures contain the subspace or lie inside it, if there are several."""
    seen = facts["estimate"]["structures"]
    relations = [one["relation"] for one in seen]
    if not {HOLDS_IT, INSIDE_IT} & set(relations):
        return None
    return f"It is {structure_words(facts).sentence(seen, relations)}."


def others(facts: Facts) -> list[tuple[int, str]]:
    """Return index and name of each structure that was not chosen."""
    words = structure_words(facts)
    seen = facts["estimate"]["structures"]
    return [(i, words.structure(one)) for i, one in enumerate(seen) if not one["chosen"]]


def doubts(facts: Facts) -> list[tuple[str, str]]:
    """Return the doubts, each with what would help."""
    texts = list(facts["estimate"]["doubts"]) or _doubts_in(facts["warnings"])
    return [_with_help(text) for text in texts]


def _doubts_in(warnings: list[str]) -> list[str]:
    """Return the doubts in the library's warning, for models that do not keep them."""
    for warning in warnings:
        match = re.fullmatch(r"codimension \d+ is not sure \(confidence [\d.]+\): (.*)\.", warning)
        if match:
            return match[1].split("; ")
    return []


def _with_help(text: str) -> tuple[str, str]:
    """Split a doubt into the doubt itself and the remark in parentheses at its end.

    >>> _with_help("there are few rows (add rows)")
    ('there are few rows', 'What would help: add rows')
    >>> _with_help("it may be the sum of two (use perpend.peel to find both)")
    ('it may be the sum of two', 'What would help: use perpend.peel to find both')
    >>> _with_help("all rows lie on a larger one (codimension=1 would give that)")
    ('all rows lie on a larger one', 'What would help: codimension=1 would give that')
    """
    match = re.fullmatch(r"(.*\S) \(([^()]*)\)", text)
    if not match:
        return text, ""
    lead = "What would help" if ADVICE_WORDS.search(match[2]) else "Possible reason"
    return match[1], f"{lead}: {match[2]}"


def fit_code(facts: Facts, rows: str = "X", **changes: object) -> str:
    """Return the code of this fit with some settings changed, for what to try next."""
    method = facts["estimate"]["method"]
    settings = _settings(facts) | {key: repr(value) for key, value in changes.items()}
    arguments = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"from perpend import {method}\n\nmodel = {method}({arguments}).fit({rows})"


def command(facts: Facts, name: str, **changes: str) -> str:
    """Return the command for the same file with the same settings, if it has options for them."""
    settings = _settings(facts) | changes
    words = ["perpend", name, shlex.quote(facts["data"]["name"] or "YOUR_FILE")]
    if name == "fit":
        words += ["-o RESULTS"]
        method = facts["estimate"]["method"]
        words += [f"--method {method}"] if method != "DPCP" else []
    if "codimension" in settings:
        words.append(f"--codimension {settings['codimension']}")
    affine = settings.get("affine", "False")  # the command line's own default is not Python's
    words.append("--affine " + {"True": "yes", "False": "no"}.get(affine, "auto"))
    if name == "fit" and "normalize" in settings:
        words.append("--no-normalize")
    return " ".join(words)


def _settings(facts: Facts) -> dict[str, str]:
    """Return the arguments, as code, that change the estimate."""
    estimate = facts["estimate"]
    parameters, settings = estimate["parameters"], {}
    if estimate["given"]:
        settings["codimension"] = str(estimate["codimension"])
    if parameters.get("affine") in ("True", "auto"):
        settings["affine"] = "True" if parameters["affine"] == "True" else '"auto"'
    if parameters.get("normalize") == "False":
        settings["normalize"] = "False"
    return settings
