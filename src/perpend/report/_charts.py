"""The charts of the page, drawn from facts: spectra, distances, the best view of a table."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from perpend.report import _svg as svg
from perpend.report._distances import DistanceFacts
from perpend.report._facts import AnswerFacts
from perpend.report._html import Html, join, tag
from perpend.report._rows import ViewFacts
from perpend.report._text import count, number, plural, short

FLOOR = 1e-12  # singular values below are rounding
MOST_BARS = 60


class Words(NamedTuple):
    """What a spectrum is about."""

    axis: str
    marked: str  # what the coloured bars are
    mark: str  # how many of them


def directions_chart(answer: AnswerFacts) -> Html | None:
    """Draw the singular values of the directions, largest first, and the gap at the codimension."""
    values = [max(v or 0.0, 0.0) for v in answer["singular_values"]]
    if not values or values[0] <= 0:
        return None
    c = answer["codimension"]
    ratios = [v / values[0] for v in values]
    after = f", after it {number(ratios[c])}" if 0 < c < len(ratios) else ""
    description = (
        f"Singular values of the {len(ratios)} directions relative to the largest, falling. "
        + (
            f"Value {c}, the last normal, is {number(ratios[c - 1])}{after}."
            if 0 < c <= len(ratios)
            else f"The smallest is {number(ratios[-1])}; no gap was accepted."
        )
    )
    words = Words("direction", "normals", plural(c, "normal"))
    return _spectrum(ratios, c, description, "spectrum-directions", words)


def inliers_chart(answer: AnswerFacts) -> Html | None:
    """Draw how far the inliers spread along each of their principal axes, smallest first."""
    spectrum = answer["evidence"].get("inlier_spectrum") or []
    spread = [math.sqrt(max(v or 0.0, 0.0)) for v in spectrum]
    if not spread or spread[-1] <= 0:
        return None
    ratios = [v / spread[-1] for v in spread]
    gap = answer["evidence"].get("inlier_gap")
    c = max(0, len(ratios) - answer["dimension"] - int(answer["affine"]))
    times = f" Their variance rises {number(gap, 2)} times there." if gap else ""
    description = (
        f"Spread of the inliers along their {len(ratios)} principal axes relative to the largest. "
        f"The first {c} are across the subspace, the others along it.{times}"
    )
    words = Words("axis", "across", f"{c} across")
    return _spectrum(ratios, c, description, "spectrum-inliers", words)


def _spectrum(
    ratios: Sequence[float], c: int, description: str, identifier: str, words: Words
) -> Html:
    shown = ratios[:MOST_BARS]
    logs = [math.log10(max(v, FLOOR)) for v in shown]
    low = min(-1.0, math.floor(min(logs)))
    y_ticks = [(t, svg.power(t)) for t in svg.decade_ticks(low, 0.0, 5)]
    box = svg.Box(left=svg.left_margin(y_ticks))
    y = svg.linear(low, 0.15, box.height - box.bottom, box.top)
    slot = box.inner_width / len(shown)
    x = svg.linear(0, len(shown), box.left, box.width - box.right)
    bars = [
        svg.rect(
            x(j) + 0.15 * slot,
            y(max(value, low + 0.02)),
            0.7 * slot,
            box.height - box.bottom - y(max(value, low + 0.02)),
            "fill-normal" if j < c else "fill-rest",
        )
        for j, value in enumerate(logs)
    ]
    numbers = sorted({1, len(shown), *([c] if 0 < c < len(shown) else [])})
    gap = None
    if 0 < c < len(shown):
        side = "end" if c > len(shown) / 2 else "start"
        gap = join(
            [
                svg.line(x(c), box.top, x(c), box.height - box.bottom, "mark"),
                svg.text(
                    x(c) + (-6 if side == "end" else 6),
                    box.top + 10,
                    words.mark,
                    "mark-label",
                    side,
                ),
            ]
        )
    content = [
        svg.axes(
            box,
            [(x(k - 0.5), str(k)) for k in numbers],
            [(y(t), label) for t, label in y_ticks],
            f"number of the {words.axis}" + (f" (coloured: {words.marked})" if c else ""),
            "relative size",
        ),
        bars,
        gap,
    ]
    return svg.picture(box, join(content), description, identifier)


def distance_chart(facts: DistanceFacts, answer: AnswerFacts, rows: str) -> Html:
    """Draw the histogram; the inner picture has the data's coordinates, so it can be zoomed."""
    low, step, bins = facts["low"], facts["step"], len(facts["inliers"])
    high = low + step * bins
    totals = [a + b for a, b in zip(facts["inliers"], facts["outliers"], strict=True)]
    top = max(totals) * 1.08
    y_ticks = [(t, count(t)) for t in svg.ticks(0, top, 4)]
    box = svg.Box(width=720, height=320, left=svg.left_margin(y_ticks), bottom=50, right=44)
    x = svg.linear(low, high, box.left, box.width - box.right)
    y = svg.linear(0, top, box.height - box.bottom, box.top)
    inner = tag(
        "svg",
        _bars(facts),
        _models(facts),
        _threshold(answer, low, high),
        x=svg.pixels(box.left),
        y=svg.pixels(box.top),
        width=svg.pixels(box.inner_width),
        height=svg.pixels(box.inner_height),
        # There x is 1000 times the exponent of the distance, and y is minus the count.
        viewBox=f"{svg.pixels(1000 * low)} {svg.pixels(-top)} "
        f"{svg.pixels(1000 * (high - low))} {svg.pixels(top)}",
        preserveAspectRatio="none",
        class_="plot",
    )
    frame = tag(
        "g",
        svg.axes(
            box,
            [(x(t), svg.power(t)) for t in svg.decade_ticks(low, high, 7)],
            [(y(t), label) for t, label in y_ticks],
            "distance to the subspace" + (" (sine of the angle)" if answer["relative"] else ""),
            rows,
        ),
        class_="frame",
    )
    return svg.picture(
        box, join([frame, inner]), distance_description(facts, answer, rows), "distances"
    )


def distance_description(facts: DistanceFacts, answer: AnswerFacts, rows: str) -> str:
    """Say what the histogram shows."""
    n = sum(facts["inliers"]) + sum(facts["outliers"])
    below = facts["below"]
    return (
        f"Histogram of the distances of {count(n)} {rows} on a logarithmic axis. "
        f"{count(sum(facts['inliers']))} are up to the threshold {number(answer['threshold'])}, "
        f"{count(sum(facts['outliers']))} beyond it; the farthest is {number(facts['largest'])}."
        + (f" The first bar holds {count(below)} {rows} that are nearer still." if below else "")
    )


def _bars(facts: DistanceFacts) -> Html:
    low, step = 1000 * facts["low"], 1000 * facts["step"]
    bars = []
    for j, (inliers, outliers) in enumerate(zip(facts["inliers"], facts["outliers"], strict=True)):
        if inliers:
            bars.append(svg.rect(low + j * step, -inliers, step, inliers, "fill-in"))
        if outliers:
            bars.append(svg.rect(low + j * step, -inliers - outliers, step, outliers, "fill-out"))
    return join(bars)


def _models(facts: DistanceFacts) -> Html:
    low, step = 1000 * facts["low"], 1000 * facts["step"]
    parts = []
    for key, class_ in (("expected_inliers", "model in"), ("expected_outliers", "model out")):
        values = facts[key]  # type: ignore[literal-required]
        if values:
            points = [(low + (j + 0.5) * step, -v) for j, v in enumerate(values)]
            parts.append(svg.curve(points, class_))
    return join(parts)


def _threshold(answer: AnswerFacts, low: float, high: float) -> Html | None:
    if not answer["threshold"] > 0:
        return None
    at = math.log10(answer["threshold"])
    if not low <= at <= high:
        return None
    return svg.line(1000 * at, -1e12, 1000 * at, 0, "mark")


def view_chart(view: ViewFacts, rows: str) -> Html:
    """Draw the rows along the subspace and across it."""
    xs, ys = zip(*view["points"], strict=True)
    x_ends, y_ends = _ends(xs), _ends(ys)
    y_ticks = [(t, number(t)) for t in svg.ticks(*y_ends, 5)]
    box = svg.Box(width=520, height=320, left=svg.left_margin(y_ticks))
    x = svg.linear(*x_ends, box.left, box.width - box.right)
    y = svg.linear(*y_ends, box.height - box.bottom, box.top)
    groups: list[list[tuple[float, float]]] = [[], []]
    for (a, b), inlier in zip(view["points"], view["inlier"], strict=True):
        if x_ends[0] <= a <= x_ends[1] and y_ends[0] <= b <= y_ends[1]:
            groups[inlier].append((x(a), y(b)))
    first, second = (short(axis, 32) for axis in view["axes"])
    description = (
        f"{count(len(xs))} of {count(view['total'])} {rows} seen along two axes: {first} from "
        f"{number(min(xs))} to {number(max(xs))}, {second} from {number(min(ys))} to "
        f"{number(max(ys))}. {count(len(groups[1]))} of them are inliers."
    )
    content = [
        svg.axes(
            box,
            [(x(t), number(t)) for t in svg.ticks(*x_ends, 6)],
            [(y(t), label) for t, label in y_ticks],
            first,
            second,
        ),
        svg.dots(groups[0], "stroke-out"),
        svg.dots(groups[1], "stroke-in"),
    ]
    return svg.picture(box, join(content), description, "view")


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis; a few points far away must not leave a dot of the rest."""
    ordered = sorted(values)
    few = len(ordered) // 500
    low, high = ordered[few], ordered[-1 - few]
    margin = 0.06 * (high - low) or 1.0
    return low - margin, high + margin
