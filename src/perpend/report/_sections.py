"""The parts of the page that are words: verdict, evidence, how it was computed, what next."""

import math

from perpend.report import _words
from perpend.report._facts import Facts
from perpend.report._html import Html, join, section, tag
from perpend.report._next import next_steps
from perpend.report._nouns import nouns
from perpend.report._text import count, name, number, percent, plural, short

SOME = 12  # names of columns that were left out


def header(facts: Facts) -> Html:
    """The verdict, the confidence and the key figures."""
    answer = facts["answer"]
    how = _words.level(answer)
    figures = [
        tag("div", tag("dt", key), tag("dd", tag("b", value), tag("small", remark)))
        for key, value, remark in tiles(facts)
    ]
    where = ["perpend report", answer["method"], facts["made"]]
    return tag(
        "header",
        tag("p", " · ".join(where), class_="kicker"),
        tag("h1", name(facts["title"], 120)),
        tag(
            "div",
            tag("p", _words.verdict(facts), class_="verdict"),
            tag("p", said) if (said := _words.inside(facts)) else None,
            tag(
                "p",
                tag("span", f"Confidence {how}", class_="badge"),
                " ",
                _words.confidence_line(answer),
                class_="confidence",
            ),
            _meter(answer["confidence"]),
            class_=f"card {how}",
        ),
        tag("dl", figures, class_="tiles"),
    )


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


def _meter(value: float) -> Html:
    """Draw the confidence as a bar with a mark where "sure" begins."""
    width = 300.0
    shown = min(max(value, 0.0), 1.0)
    return tag(
        "svg",
        tag("rect", x=0, y=4, width=300, height=8, rx=4, class_="meter-back"),
        tag("rect", x=0, y=4, width=f"{width * shown:.1f}", height=8, rx=4, class_="meter"),
        tag("line", x1=285, x2=285, y1=0, y2=16, class_="meter-sure"),
        viewBox="0 0 300 16",
        preserveAspectRatio="xMinYMid",
        class_="meter-box",
        role="img",
        aria_label=f"Confidence {_words.confidence_text(value)} of 1; sure from 0.95 on",
    )


def evidence(facts: Facts) -> Html:
    """Why the answer can be trusted, and why not."""
    rows = [
        tag(
            "tr",
            tag("th", _sign(w.good), " ", w.what, scope="row"),
            tag("td", w.found, data_label="Found"),
            tag("td", w.chance, data_label="By chance"),
            tag("td", w.meaning, data_label="What it means"),
        )
        for w in _words.witnesses(facts)
    ]
    table = None
    if rows:
        table = tag(
            "table",
            tag("caption", "Evidence, and what chance would give"),
            tag(
                "thead",
                tag(
                    "tr",
                    [
                        tag("th", h, scope="col")
                        for h in ("Evidence", "Found", "By chance", "What it means")
                    ],
                ),
            ),
            tag("tbody", rows),
            class_="stack evidence",
        )
    return section("evidence", "Can I trust this?", _doubts(facts), _intro(facts), table)


def _sign(good: bool | None) -> Html:
    sign, words, class_ = {
        True: ("✓", "speaks for it", "good"),
        False: ("!", "speaks against it", "bad"),
        None: ("i", "worth knowing", "note"),
    }[good]
    return tag("span", sign, class_=f"sign {class_}", role="img", aria_label=words, title=words)


def _intro(facts: Facts) -> Html:
    answer, say = facts["answer"], nouns(facts)
    if answer["codimension"] == 0 and not answer["told"]:
        return tag(
            "p",
            f"No direction was found that enough {say.rows} are orthogonal to. With "
            f"codimension 0 every {say.row} is an inlier by definition.",
        )
    if answer["sure"]:
        asked = (
            "Two independent witnesses were asked: the descents, which only see directions, and "
            f"the {say.rows}, which only see distances."
            if "directions_rank" in answer["evidence"]
            else f"The {say.rows} were asked how near to it they are, and how many by chance."
        )
        return tag("p", f"{asked} The answer counts as sure only where nothing speaks against it.")
    return tag(
        "p",
        "The numbers below are what the answer rests on. Rely on it only where you "
        "have other reasons to believe it.",
    )


def _doubts(facts: Facts) -> Html | None:
    found = _words.doubts(facts)
    if facts["answer"]["sure"] or not found:
        return None
    items = [
        tag(
            "li",
            reason[:1].upper() + reason[1:] + ".",
            tag("span", f" {advice}.", class_="help") if advice else None,
        )
        for reason, advice in found
    ]
    return tag("div", tag("h3", "Why it is not sure"), tag("ul", items), class_="card low plain")


def how(facts: Facts) -> Html:
    """Method, parameters, seed, versions, times, and the fingerprint of the input."""
    answer, data = facts["answer"], facts["data"]
    rows: list[tuple[str, object]] = [
        ("Method", answer["method"]),
        ("Parameters", ", ".join(f"{k}={short(v, 30)}" for k, v in answer["parameters"].items())),
        ("Seed", answer["seed"]),
        (
            "Starts and iterations",
            f"{plural(answer['n_starts'], 'start')}, at most "
            f"{plural(answer['n_iter'], 'iteration')} each; "
            + ("came to rest" if answer["converged"] else "did not come to rest"),
        ),
        (nouns(facts).rows.capitalize(), _size(facts)),
        ("Left out", _left_out(facts)),
        (
            "Distance",
            "relative: sine of the angle to the subspace"
            if answer["relative"]
            else "Euclidean, in the units of the data",
        ),
        ("Time", ", ".join(f"{short(k, 20)} {v:.2f} s" for k, v in facts["timings"].items())),
        ("Input", name(data["name"], 80) if data["name"] else ""),
        ("Input sha256", tag("code", data["sha256"], class_="hash") if data["sha256"] else ""),
        (
            "Versions",
            ", ".join(f"{short(k, 20)} {short(v, 20)}" for k, v in facts["versions"].items()),
        ),
        ("Page made", facts["made"]),
    ]
    body = [
        tag("tr", tag("th", key, scope="row"), tag("td", value)) for key, value in rows if value
    ]
    table = tag(
        "table",
        tag("caption", "Everything needed to do it again"),
        tag("tbody", body),
        class_="facts",
    )
    remarks = None
    if facts["warnings"]:
        remarks = join(
            [
                tag("h3", "Warnings"),
                tag("ul", [tag("li", warning) for warning in facts["warnings"]]),
            ]
        )
    return section("how", "How it was computed", table, remarks)


def _size(facts: Facts) -> str:
    data = facts["data"]
    shape = " × ".join(count(m) for m in data["shape"])
    records = f", from {shape} pixels" if data["kind"] == "image" else ""
    dtype = f", {data['dtype']}" if data["dtype"] else ""
    counted = "" if data["named"] else ", counted from 1 as they have no names"
    say = nouns(facts)
    size = f"{count(data['n_rows'])} {say.rows} × {count(data['n_columns'])} {say.columns}"
    return f"{size}{counted}{dtype}{records}"


def _left_out(facts: Facts) -> str:
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


def what_next(facts: Facts) -> Html:
    """What to try next."""
    items = [
        tag("li", tag("p", step.why), tag("pre", tag("code", step.how), tabindex=0))
        for step in next_steps(facts)
    ]
    return section("next", "What to try next", tag("ol", items, class_="steps"))
