"""Words of the page: numbers and names as text; confidence, doubts, and the code of other fits."""

import math
import re
import shlex
from collections.abc import Iterable
from typing import Any, TypeAlias

from perpend._structures import HOLDS_IT, INSIDE_IT, Words
from perpend._verdict import confidence
from perpend.plots._words import count, number
from perpend.structure import SURE

Facts: TypeAlias = dict[str, Any]
"""Numbers and texts that can be kept as JSON."""

NAME_LENGTH = 48  # characters of a name that are shown
COEFFICIENT = (4, 12)  # digits, at least and at most
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
SCALERS_OF_SKLEARN = {"StandardScaler", "RobustScaler", "MinMaxScaler", "MaxAbsScaler"}
ADVICE_WORDS = re.compile(r"help|allow|would give|^(add|centre|give|look|raise|use)")


def column_labels(names: Iterable[Any], kind: str = "table") -> list[str]:
    """Return names of columns for sentences and equations.

    Numbers get a word before them: a column without a name is "column 3", counted from 1 as in
    ``--columns``, and a band of an image is "band 3".

    >>> column_labels(["red", "7", "", 410.5])
    ['red', 'column 7', 'column 3', 'column 410.5']
    """
    word = "band" if kind == "image" else "column"
    texts = [str(name) or str(j + 1) for j, name in enumerate(names)]
    return [f"{word} {text}" if is_number(text) else text for text in texts]


def is_number(text: str) -> bool:
    """Say whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def column_name(names: list[str], j: int) -> str:
    """Return the name of a column, or its number if its name was not kept."""
    return names[j] if j < len(names) else f"column {j + 1}"


def digits_needed(value: float, factor: float, error: float) -> int:
    """Return the digits of a value that keep it, times a factor, within an error.

    >>> digits_needed(0.01000319, 5e6, 0.0025), digits_needed(42288.2, 1.0, 0.001)
    (8, 8)
    """
    least, most = COEFFICIENT
    if error <= 0 or value == 0 or factor == 0:
        return least
    decimals = math.ceil(math.log10(abs(factor) / (2 * error)))  # 10^-decimals / 2 is its rounding
    return min(max(decimals + math.floor(math.log10(abs(value))) + 1, least), most)


def moved(value: float, to: float) -> str:
    """Return a change from one value to another, with three digits or as many as show it.

    >>> moved(1000.5, 1000.0), moved(2.0, 0.12345)
    ('1000.5 → 1000', '2 → 0.123')
    """
    error = abs(value - to) / 20  # far from the origin both may have the same first digits
    digits = (digits_needed(v, 1.0, error) for v in (value, to))
    shown = [n if n > COEFFICIENT[0] else 3 for n in digits]
    return f"{number(value, shown[0])} → {number(to, shown[1])}"


def percent(share: float) -> str:
    """Return a share in percent; 0 and 100 only if they are exact.

    >>> percent(0.4), percent(0.12345), percent(1e-6), percent(0.99999), percent(1.0)
    ('40 %', '12.3 %', 'under 0.1 %', 'over 99.9 %', '100 %')
    """
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1:
        return "over 99.9 %"
    return f"{100 * share:.3g} %"


def with_article(text: str) -> str:
    """Return a number with its article.

    >>> with_article("8"), with_article("18"), with_article("80"), with_article("108")
    ('an 8', 'an 18', 'an 80', 'a 108')
    """
    vowel = text.startswith("8") or text in {"11", "18"}
    return f"{'an' if vowel else 'a'} {text}"


def short(text: Any, shown: int = NAME_LENGTH) -> str:
    """Return a text on one line, cut if it is long.

    >>> short("a" * 60, 8)
    'aaaaaaa…'
    """
    line = " ".join(str(text).split())
    return line if len(line) <= shown else line[: shown - 1] + "…"


def readable(value: Any) -> Any:
    r"""Return facts without characters that cannot be shown or encoded: controls, lone surrogates.

    >>> readable({"names": ["a\x00b\ud800c\u202e"]})
    {'names': ['a�b�c�']}
    """
    if isinstance(value, dict):
        return {readable(key): readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [readable(item) for item in value]
    if isinstance(value, str):
        kept = "\n\t\u202f\u00a0"
        return "".join(c if c.isprintable() or c in kept else "\ufffd" for c in value)
    return value


def png(address: str) -> str:
    """Return the address of a picture that is part of the page; refuse any other."""
    if not str(address).startswith("data:image/png;base64,"):
        raise ValueError(f"{str(address)[:40]!r} is not a picture inside the page.")
    return address


def nouns(kind: str, n_columns: int) -> dict[str, str]:
    """Return the words that fit the kind of data; points with more than x, y and z have columns."""
    row, column = {"image": ("pixel", "band"), "cloud": ("point", "coordinate")}.get(
        kind, ("row", "column")
    )
    if kind == "cloud" and n_columns > 3:
        column = "column"
    return {"row": row, "rows": f"{row}s", "column": column, "columns": f"{column}s"}


def level(value: float) -> str:
    """Return the confidence as a word."""
    if value >= SURE:
        return "high"
    return "medium" if value >= MEDIUM else "low"


def confidence_text(value: float) -> str:
    """Return the confidence as a number, never as 0 or 1.

    >>> confidence_text(0.9999), confidence_text(0.9499), confidence_text(0.001)
    ('above 0.99', '0.94', 'below 0.01')
    """
    if value > 0.99:
        return "above 0.99"
    return confidence(value) if value >= 0.01 else "below 0.01"


def misses_origin(estimate: Facts) -> bool:
    """Say whether the subspace clearly misses the origin."""
    chance = estimate["evidence"].get("origin_chance")
    return chance is not None and chance < CLEAR_ORIGIN


def structure_words(facts: Facts) -> Words:
    """Return how structures are put into words, with the page's numbers."""
    return Words(
        facts["data"]["n_columns"],
        affine=facts["estimate"]["affine"],
        rows=nouns(facts["data"]["kind"], facts["data"]["n_columns"])["rows"],
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
    ('there are few rows', 'Add rows')
    >>> _with_help("it may be the sum of two (use perpend.peel to find both)")
    ('it may be the sum of two', 'Use perpend.peel to find both')
    >>> _with_help("a subspace of dimension 0 was requested (give a smaller codimension)")[1]
    'Give a smaller codimension'
    >>> _with_help("all rows lie on a larger one (codimension=1 would give that)")
    ('all rows lie on a larger one', 'codimension=1 would give that')
    """
    match = re.fullmatch(r"(.*\S) \(([^()]*)\)", text)
    if not match:
        return text, ""
    advice = match[2] if ADVICE_WORDS.search(match[2]) else f"possible reason: {match[2]}"
    is_code = "=" in advice.split()[0]
    return match[1], advice if is_code else advice[:1].upper() + advice[1:]


def fit_code(facts: Facts, rows: str = "X", **changes: object) -> str:
    """Return the code of this fit with some settings changed, for what to try next."""
    method, scalers = facts["estimate"]["method"], facts["estimate"].get("scalers") or []
    settings = _settings(facts) | {key: repr(value) for key, value in changes.items()}
    arguments = ", ".join(f"{key}={value}" for key, value in settings.items())
    model = f"{method}({arguments})"
    if not scalers:
        return f"from perpend import {method}\n\nmodel = {model}.fit({rows})"
    kinds = {code.partition("(")[0] for code in scalers}
    ours = ", ".join(sorted({method, *kinds} - SCALERS_OF_SKLEARN))
    theirs = ", ".join(sorted(kinds & SCALERS_OF_SKLEARN))
    lines = [f"from perpend import {ours}", "from sklearn.pipeline import make_pipeline"]
    lines += [f"from sklearn.preprocessing import {theirs}"] if theirs else []
    steps = ", ".join([*scalers, model])
    return "\n".join([*lines, "", f"model = make_pipeline({steps}).fit({rows})"])


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
    if facts["data"]["kind"] == "table":
        scaled = facts["estimate"].get("scalers")
        words.append(f"--standardize {'robust' if scaled else 'none'}")
    if name == "fit" and "normalize" in settings:
        words.append("--no-normalize")
    if "outliers" in settings:
        words.append(f"--outliers {settings['outliers']}")
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
