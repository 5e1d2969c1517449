"""The calibration's picture and page, from the stored answers alone."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from perpend.experiments._experiment import Results, Row
from perpend.experiments._text import percent, table
from studies._calibration_suite import FITS, HELD_OUT, SIZE, SUITES, TUNING

SURE_RIGHT, RIGHT_SURE = 0.99, 0.80  # the bars
KINDS = {
    "sphere": "on the sphere",
    "heavy": "heavy-tailed",
    "cluster": "in one tight cluster",
    "plane": "of rank 2",
}
NUMBER = re.compile(r"(?<![\w.])\d[\d.]*(?:e[+-]?\d+)?")


def draw(results: Results) -> dict[str, Any]:
    """Draw the reliability diagram, a panel for each suite."""
    from perpend import plots
    from perpend.structure import SURE

    panels = {
        f"{suite} suite": tuple(
            results.column("answers", name, suite=suite) for name in ("confidence", "right")
        )
        for suite in results.values("answers", "suite")
    }
    return {"reliability": plots.reliability(panels, sure=SURE)}


def describe(results: Results) -> str:
    """Say the bars, what was reached, where, and every answer that was sure and wrong."""
    from perpend.structure import SURE

    answers = {suite: results.rows("answers", suite=suite) for suite in SUITES}
    answers = {suite: rows for suite, rows in answers.items() if rows}
    everything = [row for rows in answers.values() for row in rows]
    return f"""\
{_headline(answers)}

{_bars(answers)}

In brackets: exact 95 % intervals. An answer is *sure* from a confidence of {SURE:g} on. It is *right* if its codimension is that
of a subspace that the generator put points on (the inliers', or the outliers' own: the plane, or the line through the
tight cluster) and its labels fit these points, with an F1 of at least {FITS:g}. The sum of both subspaces is not right, nor
is codimension 0.

![Share of right answers over the confidence, with intervals, one panel for each suite](reliability.png)

## The problems

{_problems(answers)}

## By kind

{_by_kind(answers)}

## Sure and wrong

{_sure_and_wrong(everything)}

## Right and not sure

{_why_not_sure(everything)}

{_warnings(everything)}
"""


# -- counting ----------------------------------------------------------------------------------


def held(rows: list[Row]) -> tuple[bool, bool]:
    """Whether the two bars are held: sure answers right, right answers sure."""
    right, sure, both = counts(rows)
    return sure == 0 or both / sure >= SURE_RIGHT, right > 0 and both / right >= RIGHT_SURE


def counts(rows: Iterable[Row]) -> tuple[int, int, int]:
    """Return the number of answers that are right, that are sure, and that are both."""
    pairs = Counter((row["right"], row["sure"]) for row in rows)
    both = pairs[True, True]
    return both + pairs[True, False], both + pairs[False, True], both


def _share(hits: int, n: int) -> str:
    """Return a count, its share and the exact interval.

    >>> _share(9, 10)
    '9 of 10, 90 % (55.5 to 99.7 %)'
    """
    from scipy import stats

    if n == 0:
        return "none of none"
    ends = stats.binomtest(hits, n).proportion_ci(method="exact")
    low, high = (percent(round(end, 3)) for end in ends)
    return f"{hits} of {n}, {percent(hits / n)} ({low.removesuffix(' %')} to {high})"


# -- parts of the page -------------------------------------------------------------------------


def _headline(answers: dict[str, list[Row]]) -> str:
    parts = []
    for suite, rows in answers.items():
        right, sure, both = counts(rows)
        trusted, bold = held(rows)
        parts.append(
            f"On the {len(rows)} problems of the {suite} suite {right} answers are right and {sure} "
            f"are sure. Of the sure ones {_percent(both, sure)} are right "
            f"({_verdict(SURE_RIGHT, ok=trusted)}), and {_percent(both, right)} of the right ones "
            f"are sure ({_verdict(RIGHT_SURE, ok=bold)})."
        )
    return "\n".join(parts)


def _percent(hits: int, n: int) -> str:
    return percent(hits / n) if n else "none"


def _verdict(bar: float, *, ok: bool) -> str:
    return f"{'held' if ok else '**missed**'}: at least {percent(bar)}"


def _bars(answers: dict[str, list[Row]]) -> str:
    lines: dict[str, list[str]] = {
        f"sure answers that are right, at least {percent(SURE_RIGHT)}": [],
        f"right answers that are sure, at least {percent(RIGHT_SURE)}": [],
    }
    for rows in answers.values():
        right, sure, both = counts(rows)
        for line, n, ok in zip(lines.values(), (sure, right), held(rows), strict=True):
            line.append(f"{_share(both, n)}, {'held' if ok else '**missed**'}")
    header = ["bar", *(f"{suite} suite" for suite in answers)]
    return table(header, ([name, *cells] for name, cells in lines.items()))


def _problems(answers: dict[str, list[Row]]) -> str:
    lines: list[tuple[str, str, Any]] = [
        *((f"outliers {words}", "kind", kind) for kind, words in KINDS.items()),
        *((f"noise {value:g}", "noise", value) for value in SUITES[TUNING].noise),
        *((f"stretch {value:g}", "stretch", value) for value in SUITES[TUNING].stretch),
    ]
    shares = table(
        ["", *(f"{suite} suite" for suite in answers)],
        (
            [words, *(len(_where(rows, name, value)) for rows in answers.values())]
            for words, name, value in lines
        ),
    )
    if HELD_OUT in answers:
        use = (
            f"The {TUNING} suite may be looked at while\nthe method is changed. The {HELD_OUT} one "
            "has another seed and other shares, more of what is hard, and is\nnot used for that."
        )
    else:
        use = (
            f"These are problems of the {TUNING}\nsuite; only the full size, {SIZE} problems in each, "
            f"runs the {HELD_OUT} one."
        )
    return f"""\
D is drawn from 3 to 60, c from 1 to D/2, the number of inliers N from 2D to 20D and the share of outliers from 0 to
{percent(0.9)}, all uniformly and from the suite's seed. `DPCP()` is told nothing. {use}

{shares}"""


def _by_kind(answers: dict[str, list[Row]]) -> str:
    header = ["", "problems", "right", "of them the outliers' own", "sure", "sure and wrong", "right ones that are sure"]  # fmt: skip
    parts = []
    for suite, rows in answers.items():
        groups = {"all": rows}
        groups |= {f"outliers {w}": _where(rows, "kind", kind) for kind, w in KINDS.items()}
        for name in ("noise", "stretch"):
            values = SUITES[suite]._asdict()[name]
            groups |= {f"{name} {value:g}": _where(rows, name, value) for value in values}
        lines = [[words, *_line(chosen)] for words, chosen in groups.items() if chosen]
        parts.append(f"The {suite} suite:\n\n{table(header, lines)}")
    return "\n\n".join(parts)


def _where(rows: list[Row], name: str, value: Any) -> list[Row]:
    return [row for row in rows if row[name] == value]


def _line(rows: list[Row]) -> list[Any]:
    right, sure, both = counts(rows)
    own = sum(row["subspace"] == "outliers" for row in rows)
    return [len(rows), right, own, sure, sure - both, _percent(both, right)]


def _sure_and_wrong(rows: list[Row]) -> str:
    wrong = [row for row in rows if row["sure"] and not row["right"]]
    if not wrong:
        return "No answer is both."
    header = ["suite, number", "outliers", "D", "c", "N", "M", "noise", "stretch", "found",
              "confidence", "labelled inliers", "F1", "F1 of outliers", "angles"]  # fmt: skip
    lines = [
        [
            f"{row['suite']}, {row['index']}",
            row["kind"],
            *(row[name] for name in ("D", "c", "N", "M", "noise", "stretch", "found")),
            f"{row['confidence']:.3f}",
            row["labelled"],
            *(f"{row[name]:.3f}" for name in ("f1", "f1_outliers")),
            ", ".join(_number(row[f"angle_{name}"]) for name in ("inliers", "outliers")),
        ]
        for row in wrong
    ]
    return f"""\
{len(wrong)} {"answer is" if len(wrong) == 1 else "answers are"} both. Angles: the sines of the largest ones to the inliers' subspace and to the outliers'; 0 means that
one holds the other, so with a codimension that is too small the answer holds the inliers' subspace and more.

{table(header, lines)}"""


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _why_not_sure(rows: list[Row]) -> str:
    shy = [row for row in rows if row["right"] and not row["sure"]]
    if not shy:
        return "Every right answer is sure."
    alone: Counter[str] = Counter()
    among: Counter[str] = Counter()
    for row in shy:
        sentences = set(doubts(row["doubts"]))
        among.update(sentences)
        alone.update(sentences if len(sentences) == 1 else [])
    lines = [[sentence, n, alone[sentence]] for sentence, n in among.most_common()]
    return f"""\
{len(shy)} right answers are not sure. What they warn of, with numbers left out:

{table(["doubt", "answers", "as the only doubt"], lines)}"""


def doubts(text: str) -> list[str]:
    """Return the sentences of a warning without their numbers.

    >>> doubts("only 7 rows (add rows); a rise of 1.5e-3, or 20% (noise)")
    ['only … rows (add rows)', 'a rise of …, or …% (noise)']
    """
    sentences = re.split(r"(?<=\)); ", text)
    return [NUMBER.sub("…", sentence) for sentence in sentences if sentence]


def _warnings(rows: list[Row]) -> str:
    unsure = [row for row in rows if not row["sure"]]
    silent = sum(not row["warned"] for row in unsure)
    loud = sum(row["warned"] for row in rows if row["sure"])
    if not silent and not loud:
        return (
            f"Each of the {len(unsure)} answers that are not sure, right or wrong, comes with a "
            "`CodimensionWarning`, and\nno sure one does."
        )
    return (
        f"**{silent} of the {len(unsure)} answers that are not sure come without a "
        f"`CodimensionWarning`, and {loud} sure ones with one.**"
    )
