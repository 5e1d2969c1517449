"""The answer in words: the verdict in one sentence, and what speaks for and against it."""

import math
import re
from typing import NamedTuple

from perpend._structures import HOLDS_IT, INSIDE_IT, Words
from perpend.plots._words import count, number, plural
from perpend.report._facts import AnswerFacts, Facts
from perpend.report._nouns import Nouns, nouns
from perpend.report._text import percent, short
from perpend.structure import SURE

MEDIUM = 0.5  # below this confidence an answer is a guess
WORDS = {0: "a single point", 1: "a line", 2: "a plane"}
MISFIT = 2.0  # of the outliers; directions without preference exceed it in one of a thousand cases
SOME = 12  # names of columns that were left out
CLEAR_STEP = 4.47  # the power of all other steps from which on a step is sure
CLEAR_ORIGIN = 1e-6  # chance below which the subspace clearly misses the origin
ADVICE = re.compile(r"help|show|would give|^(add|centre|look|raise|use)")


class Witness(NamedTuple):
    """One piece of evidence: what was looked at, what was found, and what chance would give."""

    what: str
    found: str
    chance: str
    meaning: str
    good: bool | None  # None: it says something, but neither for nor against the answer


def level(answer: AnswerFacts) -> str:
    """Return the confidence as a word."""
    if answer["confidence"] >= SURE:
        return "high"
    return "medium" if answer["confidence"] >= MEDIUM else "low"


def confidence_text(value: float) -> str:
    """Return the confidence as a number that never claims certainty.

    >>> confidence_text(0.9999), confidence_text(0.42), confidence_text(0.001)
    ('above 0.99', '0.42', 'below 0.01')
    """
    if value > 0.99:
        return "above 0.99"
    return f"{value:.2f}" if value >= 0.01 else "below 0.01"


def subspace(facts: Facts) -> str:
    """Name the subspace."""
    answer = facts["answer"]
    d = answer["dimension"]
    shape = (
        WORDS.get(d) or f"a {count(d)}-dimensional {'plane' if answer['affine'] else 'subspace'}"
    )
    chance = answer["evidence"].get("origin_chance")
    misses = answer["affine"] and d > 0 and chance is not None and chance < CLEAR_ORIGIN
    place = " that misses the origin" if misses else ""
    if d == 0 and not answer["affine"]:
        return "the origin alone"
    return f"{shape} in {plural(facts['data']['n_columns'], nouns(facts).column)}{place}"


def verdict(facts: Facts) -> str:
    """Return the answer in one sentence."""
    answer, n, say = facts["answer"], facts["data"]["n_rows"], nouns(facts)
    if answer["codimension"] == 0:
        return _no_subspace(answer, n, facts["data"]["n_columns"], say)
    outliers = answer["outliers"]
    exact = answer["noise"] == 0
    near = "lie on" if exact else "lie near"
    rest = f"the other {count(outliers)} are outliers"
    if outliers == 1:
        rest = "the other one is an outlier"
    if outliers == 0:
        rows, rest = f"All {count(n)} {say.rows}", "none is an outlier"
    else:
        rows = f"{count(n - outliers)} of {count(n)} {say.rows}"
    if n - outliers == 1:
        near = near.replace("lie", "lies")
    said = f"{rows} {near} {subspace(facts)}; {rest}."
    if not answer["sure"]:
        said = f"Perhaps, but this is not sure: {said[0].lower() + said[1:]}"
    told = f" The codimension, {answer['codimension']}, was given and not looked for."
    return said + (told if answer["told"] else "")


def _no_subspace(answer: AnswerFacts, n: int, D: int, say: Nouns) -> str:
    if answer["told"]:
        return (
            f"Codimension 0 was given, so all {count(n)} {say.rows} are inliers of the whole "
            f"space of {plural(D, say.column)}."
        )
    sure = "" if answer["sure"] else f", as far as these {say.rows} can tell"
    whole = f"the only {say.column}" if D == 1 else f"all {count(D)} dimensions"
    return (
        f"No subspace was found: the {count(n)} {say.rows} fill {whole}{sure}, so "
        f"no {say.row} stands out as an outlier."
    )


def structure_words(facts: Facts) -> Words:
    """Return how structures are put into words, with the page's numbers."""
    return Words(
        facts["data"]["n_columns"],
        affine=facts["answer"]["affine"],
        rows=nouns(facts).rows,
        count=count,
        number=lambda value: number(value, 2),
    )


def inside(facts: Facts) -> str | None:
    """Say what the subspace is inside of, and what is inside of it, where several were seen."""
    seen = facts["answer"]["structures"]
    relations = [one["relation"] for one in seen]
    if not {HOLDS_IT, INSIDE_IT} & set(relations):
        return None
    return f"It is {structure_words(facts).sentence(seen, relations)}."


def confidence_line(answer: AnswerFacts) -> str:
    """Return the confidence in a few words."""
    what = "that the given codimension fits" if answer["told"] else "in the codimension"
    return (
        f"Confidence {what}: {level(answer)} ({confidence_text(answer['confidence'])}; "
        f"from {SURE} on an answer counts as sure)."
    )


def doubts(facts: Facts) -> list[tuple[str, str]]:
    """Return the reasons for doubt, each with what would help."""
    found = list(facts["answer"]["doubts"]) or _doubts_in(facts["warnings"])
    return [_with_help(text) for text in found]


def _doubts_in(warnings: list[str]) -> list[str]:
    """Return the reasons in the library's warning, for models that do not keep them."""
    for warning in warnings:
        match = re.fullmatch(r"codimension \d+ is not sure \(confidence [\d.]+\): (.*)\.", warning)
        if match:
            return match[1].split("; ")
    return []


def _with_help(text: str) -> tuple[str, str]:
    """Split a doubt into what was seen and the remark in parentheses at its end.

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
    lead = "What would help" if ADVICE.search(match[2]) else "Possible reason"
    return match[1], f"{lead}: {match[2]}"


def tiles(facts: Facts) -> list[tuple[str, str, str]]:
    """Return the key figures: name, value, remark."""
    answer, data, say = facts["answer"], facts["data"], nouns(facts)
    share = answer["outliers"] / max(data["n_rows"], 1)
    unit = "sine of the angle" if answer["relative"] else "in the data's units"
    how = {"auto": "found", "given": "given", "contamination": "from the given contamination"}
    found = [
        (say.rows.capitalize(), count(data["n_rows"]), plural(data["n_columns"], say.column)),
        (
            "Dimension",
            count(answer["dimension"]),
            f"codimension {count(answer['codimension'])}" + (", given" if answer["told"] else ""),
        ),
        ("Outliers", count(answer["outliers"]), percent(share)),
    ]
    if answer["codimension"]:
        found.append(("Noise of inliers", *_noise(facts)))
        found.append(
            ("Threshold", number(answer["threshold"]), f"{how[answer['threshold_from']]}; {unit}")
        )
    return found


def _noise(facts: Facts) -> tuple[str, str]:
    """Return the expected length of an inlier's error, and what it is in one column."""
    answer, n, say = facts["answer"], facts["data"]["n_columns"], nouns(facts)
    unit = "relative to their length" if answer["relative"] else "in the data's units"
    if answer["noise"] == 0:
        return "none", f"over all {say.columns}, {unit}"
    each = number(answer["noise"] / math.sqrt(n), 2)  # the error is as long as D of these
    whole = f"length over all {n} {say.columns}; about {each} in each" if n > 1 else ""
    return number(answer["noise"]), "; ".join(filter(None, [whole, unit]))


def size(facts: Facts) -> str:
    """Say how many rows and columns there are, and of what."""
    data = facts["data"]
    shape = " × ".join(count(m) for m in data["shape"])
    records = f", from {shape} pixels" if data["kind"] == "image" else ""
    dtype = f", {data['dtype']}" if data["dtype"] else ""
    counted = "" if data["named"] else ", counted from 1 as they have no names"
    say = nouns(facts)
    size = f"{count(data['n_rows'])} {say.rows} × {count(data['n_columns'])} {say.columns}"
    return f"{size}{counted}{dtype}{records}"


def left_out(facts: Facts) -> str:
    """Say which records and columns of the data were not used."""
    data = facts["data"]
    said = [
        f"{count(n)} records {why}"
        for n, why in ((data["nan"], "with NaN or infinity"), (data["ignored"], "without data"))
        if n
    ]
    if data["dropped_columns"]:
        names = ", ".join(short(c, 20) for c in data["dropped_columns"][:SOME])
        said.append(f"{plural(len(data['dropped_columns']), nouns(facts).column)}: {names}")
    return "; ".join(said)


def witnesses(facts: Facts) -> list[Witness]:
    """Return every piece of evidence that means something to a person."""
    makers = (_rows_on_it, _likelihood, _gap, _descents, _outlier_law, _origin, _span)
    return [witness for make in makers if (witness := make(facts)) is not None]


def _rows_on_it(facts: Facts) -> Witness | None:
    answer, say = facts["answer"], nouns(facts)
    evidence = answer["evidence"]
    if evidence.get("rows_on_subspace") is None:
        return None
    on_it, free = evidence["rows_on_subspace"], evidence["rows_on_any_subspace"]
    lifted = " The point where it lies counts as one of them." if answer["affine"] else ""
    return Witness(
        f"Different {say.rows} on the subspace",
        count(on_it),
        f"{count(free)}",
        f"Any subspace of this dimension can be laid through {plural(free, say.row)}; only "
        f"{say.rows} beyond these are evidence.{lifted}",
        on_it > 2 * free,
    )


def _likelihood(facts: Facts) -> Witness | None:
    gain, needed = (facts["answer"]["evidence"].get(key) for key in ("gain", "gain_needed"))
    if gain is None or needed is None:
        return None
    return Witness(
        "How much better than no subspace",
        number(gain),
        f"up to {number(needed)}",
        f"The gain in log-likelihood over {nouns(facts).rows} without any structure. Luck, and the "
        "freedom to turn the subspace, reach the value in the third column.",
        gain > needed,
    )


def _gap(facts: Facts) -> Witness | None:
    evidence, say = facts["answer"]["evidence"], nouns(facts)
    # Where the variances decay, the whitened rows were asked, and their step made the answer sure.
    white = "whitened_" if "whitened_inlier_gap" in evidence else ""
    names = ("inlier_gap", "inlier_gap_runner_up")
    gap, rest = (evidence.get(white + name) for name in names)
    if gap is None or rest is None:
        return None
    scaled = f" Each {say.row} was scaled by the variances of all {say.rows} for this."
    return Witness(
        "Step in the inliers' variance",
        f"{_times(gap)} times",
        f"up to {_times(rest)} times elsewhere",
        "The inliers vary this much more along the subspace than across it. A step that towers "
        f"over all others shows the dimension.{scaled if white else ''}",
        gap > max(rest, 1.2) ** CLEAR_STEP,
    )


def _times(factor: float) -> str:
    """Two digits are enough.

    >>> _times(1.0), _times(111.0)
    ('1.0', '110')
    """
    return f"{factor:.1f}" if factor < 10 else number(factor, 2)


def _descents(facts: Facts) -> Witness | None:
    answer, say = facts["answer"], nouns(facts)
    evidence, c = answer["evidence"], answer["codimension"]
    rank = evidence.get("directions_rank")
    if rank is None:
        return None
    gap = evidence.get("directions_gap")
    fall = f"; their singular values fall {_times(gap)} times there" if gap and gap > 1 else ""
    agrees = rank == c
    if evidence.get("directions_saturated"):
        meaning = "Every start found a normal of its own, so there may be more than these show."
    elif agrees:
        meaning = (
            f"An independent witness: the descents from random starts agree with the {say.rows}."
        )
    elif answer["sure"]:
        meaning = (
            "The descents from random starts do not agree, but two other ways that know nothing of "
            f"them led to the same {c} normals."
        )
    else:
        meaning = (
            f"The descents from random starts do not agree with the {say.rows}, which say {c}."
        )
    return Witness(
        "Independent directions among the descents",
        f"{rank}{fall}",
        f"{min(answer['n_starts'], c + answer['dimension'])} without a subspace",
        meaning,
        None if answer["sure"] and not agrees else agrees,
    )


def _outlier_law(facts: Facts) -> Witness | None:
    answer, rows = facts["answer"], nouns(facts).rows
    misfit = answer["evidence"].get("outlier_misfit")
    if misfit is None or answer["outliers"] < 10 or (answer["affine"] and misfit == 0):
        return None
    structured = misfit > MISFIT
    return Witness(
        "Outliers with a pattern of their own",
        number(misfit, 2),
        f"up to {number(MISFIT)}",
        f"The outliers' distances differ from those of {rows} without preferred direction: they "
        "may be a group of their own."
        if structured
        else f"The outliers' distances are those of {rows} without preferred direction.",
        None if structured else True,
    )


def _origin(facts: Facts) -> Witness | None:
    answer, evidence = facts["answer"], facts["answer"]["evidence"]
    distance, error = evidence.get("origin_distance"), evidence.get("origin_error")
    if distance is None:
        return None
    misses = (evidence.get("origin_chance") or 0.0) < CLEAR_ORIGIN
    return Witness(
        "Distance of the origin from the affine subspace",
        number(distance),
        "any" if error is None else f"about {number(error, 2)}",
        "The subspace clearly misses the origin."
        if misses
        else "The subspace may pass through the origin, so affine=False would do.",
        misses == answer["affine"],
    )


def _span(facts: Facts) -> Witness | None:
    answer, say = facts["answer"], nouns(facts)
    rank = answer["evidence"].get("rank")
    if rank is None or answer["codimension"] + answer["dimension"] == rank:
        return None
    return Witness(
        f"Dimension that all {say.rows} together span",
        count(rank),
        count(answer["codimension"] + answer["dimension"]),
        f"{say.columns.capitalize()} are constant, copies of one another, or there are fewer "
        f"{say.rows} than {say.columns}.",
        None,
    )
