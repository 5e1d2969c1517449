"""The parts of the page, each a function of the facts; None where there is nothing to say."""

import math
from collections.abc import Iterable

from perpend.report import _words
from perpend.report._charts import directions_chart, distance_chart, inliers_chart, view_chart
from perpend.report._facts import Facts
from perpend.report._html import Html, join, tag
from perpend.report._next import next_steps
from perpend.report._rows import CloudFacts, ImageFacts
from perpend.report._text import count, name, number, percent, plural, short

TERMS = 12  # of an equation
SURE_CLASS = {"high": "high", "medium": "medium", "low": "low"}


def header(facts: Facts) -> Html:
    """The verdict, the confidence and the key figures."""
    answer, data = facts["answer"], facts["data"]
    how = _words.level(answer)
    tiles = [
        tag("div", tag("dt", key), tag("dd", tag("b", value), tag("small", remark)))
        for key, value, remark in _words.tiles(facts)
    ]
    where = ["perpend report"]
    if data["name"]:
        where.append(short(data["name"]))
    return tag(
        "header",
        tag("p", " · ".join(where), class_="kicker"),
        tag("h1", name(facts["title"], 120)),
        tag(
            "div",
            tag("p", _words.verdict(facts), class_="verdict"),
            tag("p", tag("span", f"Confidence {how}", class_="badge"), " ",
                _words.confidence_line(answer), class_="confidence"),
            _meter(answer["confidence"]),
            class_=f"card {how}",
        ),
        tag("dl", tiles, class_="tiles"),
    )


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
            tag("thead", tag("tr", [tag("th", h, scope="col") for h in
                                    ("Evidence", "Found", "By chance", "What it means")])),
            tag("tbody", rows),
            class_="stack",
        )
    return _section("evidence", "Can I trust this?", _doubts(facts), _intro(facts), table)


def _sign(good: bool | None) -> Html:
    sign, words, class_ = {
        True: ("✓", "speaks for it", "good"),
        False: ("!", "speaks against it", "bad"),
        None: ("i", "worth knowing", "note"),
    }[good]
    return tag("span", sign, class_=f"sign {class_}", role="img", aria_label=words, title=words)


def _intro(facts: Facts) -> Html:
    answer = facts["answer"]
    if answer["codimension"] == 0 and not answer["told"]:
        return tag("p", "No direction was found that enough rows are orthogonal to. With "
                   "codimension 0 every row is an inlier by definition.")
    if answer["sure"]:
        return tag("p", "Two independent witnesses were asked: the descents, which only see "
                   "directions, and the rows, which only see distances. The answer counts as sure "
                   "only where nothing speaks against it.")
    return tag("p", "The numbers below are what the answer rests on. Rely on it only where you "
               "have other reasons to believe it.")


def _doubts(facts: Facts) -> Html | None:
    found = _words.doubts(facts)
    if facts["answer"]["sure"] or not found:
        return None
    items = [
        tag("li", reason[:1].upper() + reason[1:] + ".",
            tag("span", f" What would help: {advice}.", class_="help") if advice else None)
        for reason, advice in found
    ]
    return tag("div", tag("h3", "Why it is not sure"), tag("ul", items), class_="card low plain")


def pictures(facts: Facts) -> Html:
    """Spectra, distances, and the rows themselves."""
    answer, parts = facts["answer"], facts["pictures"]
    charts = []
    if parts["image"] is not None:
        charts.append(_image(parts["image"], facts))
    if parts["cloud"] is not None:
        charts.append(_cloud(parts["cloud"], facts))
    if facts["distances"] is not None:
        charts.append(_distances(facts))
    if parts["view"] is not None:
        said = "The rows from the side"
        text = "Inliers are a thin band where the subspace is seen from the side."
        if answer["codimension"] == 0:
            said, text = "The rows along their two main axes", "No direction is thin."
        elif facts["data"]["n_columns"] == 2:
            said, text = "The rows", "Both columns in their own units."
        shown = len(parts["view"]["points"])
        if shown < parts["view"]["total"]:
            text += f" {count(shown)} of {count(parts['view']['total'])} rows, chosen at random."
        charts.append(_figure(view_chart(parts["view"]), said, text, _legend()))
    spectra = [
        (directions_chart(answer), "Directions that the descents found",
         "As many large values as there are normals, then a fall: that number is the codimension."),
        (inliers_chart(answer), "How far inliers spread",
         "Small across the subspace, large along it. Between the two there should be a step."),
    ]
    pair = [_figure(chart, said, text) for chart, said, text in spectra if chart is not None]
    note = None
    if facts["distances"] is None and answer["codimension"]:
        note = tag("p", "The rows were not given with this report, so there is no picture of them. "
                   "Use model.report(path, X).", class_="note")
    return _section("pictures", "Pictures", charts, note, tag("div", pair, class_="pair"))


def _legend(*, model: bool = False) -> Html:
    items = [("key in", "inliers"), ("key out", "outliers")]
    if model:
        items.append(("key line", "two-group model"))
    keys = [tag("li", tag("span", class_=class_), " ", text) for class_, text in items]
    return tag("ul", keys, class_="legend")


def _figure(chart: Html, title: str, text: str, *more: Html | None, class_: str = "") -> Html:
    caption = tag("figcaption", tag("b", title), " ", text)
    return tag("figure", caption, more, chart, class_=class_ or None)


def _distances(facts: Facts) -> Html:
    assert facts["distances"] is not None
    keys = tag(
        "p",
        "Drag to move, pinch or Ctrl + wheel to zoom; with the keyboard: arrows, + and −, 0 for all.",
        class_="hint", id="distances-keys",
    )
    chart = tag(
        "div",
        distance_chart(facts["distances"], facts["answer"]),
        class_="zoom",
        tabindex=0,
        role="group",
        aria_label="Distances, zoomable",
        aria_describedby="distances-keys",
        data_zoom=True,
    )
    buttons = _buttons(
        "zoom", [("+", "in", "Zoom in"), ("−", "out", "Zoom out"), ("←", "left", "Move left"),
                 ("→", "right", "Move right"), ("0", "all", "Show all")]
    )
    has_model = facts["distances"]["expected_outliers"] is not None
    text = (
        f"The dashed line is the threshold, {number(facts['answer']['threshold'])}: rows beyond it "
        "are labelled outliers."
    )
    return _figure(chart, "Distances of the rows to the subspace", text,
                   _legend(model=has_model), buttons, keys)


def _buttons(kind: str, buttons: Iterable[tuple[str, str, str]]) -> Html:
    made = [
        tag("button", sign, type="button", aria_label=label, title=label,
            **{f"data_{kind}_do": action})
        for sign, action, label in buttons
    ]
    return tag("div", made, class_="buttons", role="group", aria_label="View", hidden=True)


def _cloud(cloud: CloudFacts, facts: Facts) -> Html:
    names = [short(facts["data"]["columns"][j], 20) for j in cloud["axes"]]
    low, size = cloud["low"], cloud["size"]
    ranges = ", ".join(
        f"{name} from {number(a)} to {number(a + size)}" for name, a in zip(names, low, strict=True)
    )
    plane = " The plane that was found is drawn as a patch." if cloud["patch"] else ""
    description = f"Point cloud in space: {ranges}. {count(cloud['shown'])} points.{plane}"
    text = "Drag to turn; with the keyboard: arrows, + and −, 0 for the first view."
    if cloud["shown"] < cloud["total"]:
        text += f" {count(cloud['shown'])} of {count(cloud['total'])} points."
    canvas = tag(
        "canvas", id="cloud", tabindex=0, role="img", aria_label=description, width=900, height=560
    )
    buttons = _buttons(
        "cloud", [("←", "left", "Turn left"), ("→", "right", "Turn right"), ("↑", "up", "Turn up"),
                  ("↓", "down", "Turn down"), ("+", "in", "Nearer"), ("−", "out", "Farther"),
                  ("0", "all", "First view")]
    )
    fallback = tag("noscript", tag("p", "The cloud needs JavaScript. ", description))
    return _figure(join([canvas, fallback]), "The rows in space", text, _legend(), buttons)


def _image(image: ImageFacts, facts: Facts) -> Html:
    outliers, pixels = facts["answer"]["outliers"], facts["data"]["n_rows"]
    size = f"{count(image['width'])} × {count(image['height'])} pixels"
    scene = tag("img", src=image["scene"], alt=f"The scene in grey, {size}: mean of all bands.")
    mask = tag(
        "img", src=image["mask"], class_="mask",
        alt=f"{count(outliers)} of {count(pixels)} pixels are marked as outliers.",
    )
    switch = tag(
        "label", tag("input", type="checkbox", checked=True, data_mask=True),
        " show the outliers", class_="switch",
    )
    smaller = ""
    if image["factor"] > 1:
        smaller = f" Each pixel of the picture stands for {image['factor']} × {image['factor']}."
    empty = math.prod(facts["data"]["shape"]) - pixels
    no_data = f" {count(empty)} without data are black." if empty else ""
    return _figure(
        tag("div", scene, mask, class_="scene"), "Where the outliers are",
        f"{count(outliers)} of {count(pixels)} pixels with data ({size}).{no_data}{smaller}", switch,
    )


def outliers(facts: Facts) -> Html | None:
    """The strongest outliers and the columns that make each of them one."""
    table = facts["outliers"]
    if table is None or not table["rows"]:
        return None
    names = facts["data"]["columns"]
    blamed = any(row["blame"] for row in table["rows"])
    image = table["rows"][0]["pixel"] is not None
    heads = [("Pixel (line, sample)" if image else "Row", "number"), ("Distance", "number"),
             ("Probability", "number")]
    if blamed:
        heads.append(("Columns that make it one", "text"))
    body = []
    for row in table["rows"]:
        pixel, p = row["pixel"], row["probability"]
        first = f"{pixel[0]}, {pixel[1]}" if pixel else str(row["row"])
        cells = [
            tag("th", first, scope="row", data_sort=row["row"]),
            tag("td", number(row["distance"]), data_sort=row["distance"], data_label="Distance"),
            tag("td", "unknown" if p is None else _probability(p), data_sort=p or 0,
                data_label="Probability"),
        ]
        if blamed:
            cells.append(tag("td", _blame(row["blame"], names), data_label="Columns"))
        body.append(tag("tr", cells))
    shown = len(table["rows"])
    which = f"all {shown}" if shown == table["total"] else f"{shown} of {count(table['total'])}"
    counted = "Lines and samples count" if image else "Rows count"
    caption = f"The strongest outliers ({which}). {counted} from 0."
    head = [tag("th", label, scope="col", data_kind=kind) for label, kind in heads]
    return _section(
        "outliers", "The strongest outliers", tag("p", _blame_note(facts, blamed=blamed)),
        tag("div", tag("table", tag("caption", caption), tag("thead", tag("tr", head)),
                       tag("tbody", body), class_="stack sortable"), class_="scroll"),
    )


def _probability(p: float) -> str:
    return percent(p)


def _blame_note(facts: Facts, *, blamed: bool) -> str:
    if blamed:
        return (
            "A column is named with the share of the squared distance that would vanish if it alone "
            "took the value after the arrow. Several large shares: a change of any of these would do. "
            "None: no single column is to blame."
        )
    if facts["answer"]["codimension"] == 1:
        return (
            "With a single normal every column that it uses could make up for the whole distance, so "
            "no column can be blamed: at least two normals are needed to tell them apart."
        )
    return "No single column is to blame for any of these rows."


def _blame(blames: Iterable[dict[str, float]] | Iterable[object], names: list[str]) -> Html:
    parts = []
    for blame in blames:
        j = blame["column"]  # type: ignore[index]
        column = names[j] if j < len(names) else f"x{j}"
        parts.append(
            tag("span", name(column, 28), f" {blame['share']:.0%}: {number(blame['value'])} → "  # type: ignore[index]
                f"{number(blame['fits'])}", class_="blame")  # type: ignore[index]
        )
    return join(parts) if parts else tag("span", "no single column", class_="muted")


def equation(facts: Facts) -> Html | None:
    """The subspace as equations in the data's own names and units."""
    answer, names = facts["answer"], facts["data"]["columns"]
    c, shown = answer["codimension"], len(answer["normals"])
    if c == 0:
        return None
    lines = [
        tag("p", _one_equation(normal, b, names), class_="equation")
        for normal, b in zip(answer["normals"], answer["intercept"], strict=True)
    ]
    text = "A row is on the subspace where this holds, in the data's own units:"
    if c > 1:
        text = (
            f"A row is on the subspace where all {c} of these hold at once, in the data's own units. "
            "They are one choice of many: any combination of them holds, too."
        )
    rest = None
    if shown < c:
        text = text.replace(f"all {c} of these", f"all {c} equations")
        rest = tag("p", f"These are the first {shown} of {count(c)}. All of them: ",
                   tag("code", "model.normals_ @ x = model.intercept_"), " after ",
                   tag("code", 'model = perpend.load("model.npz")'), ".")
    affine = None
    if answer["affine"]:
        at = ", ".join(f"{short(n, 20)} = {number(v, 5)}"
                       for n, v in list(zip(names, answer["location"], strict=False))[:TERMS])
        more = " …" if len(answer["location"]) > TERMS else ""
        affine = tag("p", "The inliers' mean is on it: ", at + more, ".")
    return _section("equation", "The equation", tag("p", text), lines, affine, rest)


def _one_equation(normal: list[float], intercept: float, names: list[str]) -> Html:
    """Write normal @ x = intercept with its largest coefficient positive, columns in their order."""
    largest = max(normal, key=abs)
    sign = 1.0 if largest >= 0 else -1.0
    values = {j: sign * v for j, v in enumerate(normal) if abs(v) > 1e-12 * abs(largest)}
    kept = sorted(sorted(values, key=lambda j: -abs(values[j]))[:TERMS])
    parts: list[object] = []
    for j in kept:
        value = values[j]
        joint = ("−" if value < 0 else "") if not parts else (" − " if value < 0 else " + ")
        column = names[j] if j < len(names) else f"x{j}"
        parts.append(tag("span", joint, number(abs(value), 4), " ", tag("i", name(column, 28)),
                         class_="term"))
    if len(values) > len(kept):
        parts.append(f" + {plural(len(values) - len(kept), 'smaller term')}")
    return join([*parts, " = ", number(sign * intercept, 6)])


def how(facts: Facts) -> Html:
    """Method, parameters, seed, versions, times, and the fingerprint of the input."""
    answer, data = facts["answer"], facts["data"]
    rows: list[tuple[str, object]] = [
        ("Method", answer["method"]),
        ("Parameters", ", ".join(f"{k}={short(v, 30)}" for k, v in answer["parameters"].items())),
        ("Seed", answer["seed"]),
        ("Starts and iterations", f"{plural(answer['n_starts'], 'start')}, at most "
         f"{plural(answer['n_iter'], 'iteration')} each; "
         + ("came to rest" if answer["converged"] else "did not come to rest")),
        ("Rows", _size(facts)),
        ("Left out", _left_out(facts)),
        ("Distance", "relative: sine of the angle to the subspace" if answer["relative"]
         else "Euclidean, in the units of the data"),
        ("Time", ", ".join(f"{short(k, 20)} {v:.2f} s" for k, v in facts["timings"].items())),
        ("Input", name(data["name"], 80) if data["name"] else ""),
        ("Input sha256", tag("code", data["sha256"], class_="hash") if data["sha256"] else ""),
        ("Versions", ", ".join(f"{short(k, 20)} {short(v, 20)}"
                               for k, v in facts["versions"].items())),
        ("Page made", facts["made"]),
    ]
    body = [tag("tr", tag("th", key, scope="row"), tag("td", value)) for key, value in rows if value]
    table = tag("table", tag("caption", "Everything needed to do it again"), tag("tbody", body),
                class_="facts")
    remarks = None
    if facts["warnings"]:
        remarks = join([tag("h3", "Warnings"),
                        tag("ul", [tag("li", warning) for warning in facts["warnings"]])])
    return _section("how", "How it was computed", table, remarks)


def _size(facts: Facts) -> str:
    data = facts["data"]
    shape = " × ".join(count(m) for m in data["shape"])
    records = f", from {shape} pixels" if data["kind"] == "image" else ""
    dtype = f", {data['dtype']}" if data["dtype"] else ""
    return f"{count(data['n_rows'])} rows × {count(data['n_columns'])} columns{dtype}{records}"


def _left_out(facts: Facts) -> str:
    data = facts["data"]
    said = [
        f"{count(n)} records {why}"
        for n, why in ((data["nan"], "with NaN or infinity"), (data["ignored"], "without data"))
        if n
    ]
    if data["dropped_columns"]:
        names = ", ".join(short(c, 20) for c in data["dropped_columns"][:TERMS])
        said.append(f"{plural(len(data['dropped_columns']), 'column')}: {names}")
    return "; ".join(said)


def what_next(facts: Facts) -> Html:
    """What to try next."""
    items = [
        tag("li", tag("p", step.why), tag("pre", tag("code", step.how), tabindex=0))
        for step in next_steps(facts)
    ]
    return _section("next", "What to try next", tag("ol", items, class_="steps"))


def _section(identifier: str, title: str, *content: object) -> Html:
    heading = tag("h2", title, id=f"{identifier}-heading")
    return tag("section", heading, content, id=identifier, aria_labelledby=f"{identifier}-heading")
