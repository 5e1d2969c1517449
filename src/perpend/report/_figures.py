"""The pictures of the page with their captions, keys and buttons."""

import math
from collections.abc import Iterable

from perpend.report._charts import directions_chart, distance_chart, inliers_chart, view_chart
from perpend.report._facts import Facts
from perpend.report._html import Html, join, section, tag
from perpend.report._nouns import nouns
from perpend.report._profile import profile_caption, profile_chart
from perpend.report._rows import CloudFacts, ImageFacts
from perpend.report._text import count, number, short


def pictures(facts: Facts) -> Html:
    """Spectra, distances, and the rows themselves."""
    answer, parts, say = facts["answer"], facts["pictures"], nouns(facts)
    charts = []
    if parts["image"] is not None:
        charts.append(_image(parts["image"], facts))
    if parts["cloud"] is not None:
        charts.append(_cloud(parts["cloud"], facts))
    if facts["distances"] is not None:
        charts.append(_distances(facts))
    if parts["view"] is not None:
        said = f"The {say.rows} from the side"
        text = "Inliers are a thin strip where the subspace is seen from the side."
        if answer["codimension"] == 0:
            said = f"The {say.rows} along their two main axes"
            text = "No direction is thin."
        elif facts["data"]["n_columns"] == 2:
            said, text = f"The {say.rows}", f"Both {say.columns} in their own units."
        shown = len(parts["view"]["points"])
        if shown < parts["view"]["total"]:
            total = count(parts["view"]["total"])
            text += f" {count(shown)} of {total} {say.rows}, chosen at random."
        charts.append(_figure(view_chart(parts["view"], say.rows), said, text, _legend()))
    spectra = [
        _what_decided(facts),
        (
            inliers_chart(answer),
            "How far inliers spread",
            "Small across the subspace, large along it. Between the two there should be a step.",
        ),
    ]
    pair = [_figure(chart, said, text) for chart, said, text in spectra if chart is not None]
    note = None
    if facts["distances"] is None and answer["codimension"]:
        note = tag(
            "p",
            "The rows were not given with this report, so there is no picture of them. "
            "Use model.report(path, X).",
            class_="note",
        )
    return section("pictures", "Pictures", charts, note, tag("div", pair, class_="pair"))


def _what_decided(facts: Facts) -> tuple[Html | None, str, str]:
    """Return the profile where scales have decided, otherwise the directions of the descents."""
    profile = facts.get("profile")
    if profile is not None:
        chart = profile_chart(profile, nouns(facts).rows)
        return chart, "The scales that decided", profile_caption(profile)
    return (
        directions_chart(facts["answer"]),
        "Directions that the descents found",
        "As many large values as there are normals, then a fall: the codimension.",
    )


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
    rows = nouns(facts).rows
    keys = tag(
        "p",
        "Drag to move, pinch or Ctrl + wheel to zoom; with the keyboard: arrows, + and −, 0.",
        class_="hint",
        id="distances-keys",
    )
    chart = tag(
        "div",
        distance_chart(facts["distances"], facts["answer"], rows),
        class_="zoom",
        tabindex=0,
        role="group",
        aria_label="Distances, zoomable",
        aria_describedby="distances-keys",
        data_zoom=True,
    )
    buttons = _buttons(
        "zoom",
        [
            ("+", "in", "Zoom in"),
            ("−", "out", "Zoom out"),
            ("←", "left", "Move left"),
            ("→", "right", "Move right"),
            ("All", "all", "Show all"),
            ("Threshold", "near", "Around the threshold"),
        ],
    )
    has_model = facts["distances"]["expected_outliers"] is not None
    text = (
        f"The dashed line is the threshold, {number(facts['answer']['threshold'])}: {rows} beyond "
        "it are labelled outliers."
    )
    return _figure(
        chart,
        f"Distances of the {rows} to the subspace",
        text,
        _legend(model=has_model),
        buttons,
        keys,
    )


def _buttons(kind: str, buttons: Iterable[tuple[str, str, str]]) -> Html:
    made = [
        tag(
            "button",
            sign,
            type="button",
            aria_label=label,
            title=label,
            **{f"data_{kind}_do": action},
        )
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
    text = "Inliers and outliers" + (", with the plane that was found." if plane else ".")
    if cloud["shown"] < cloud["total"]:
        text += f" {count(cloud['shown'])} of {count(cloud['total'])} points."
    keys = tag(
        "p",
        "Drag to turn, pinch or Ctrl + wheel to zoom; with the keyboard: arrows, + and −, "
        "0 for the first view.",
        class_="hint",
    )
    canvas = tag(
        "canvas", id="cloud", tabindex=0, role="img", aria_label=description, width=900, height=560
    )
    buttons = _buttons(
        "cloud",
        [
            ("←", "left", "Turn left"),
            ("→", "right", "Turn right"),
            ("↑", "up", "Turn up"),
            ("↓", "down", "Turn down"),
            ("+", "in", "Nearer"),
            ("−", "out", "Farther"),
            ("Reset", "all", "First view"),
        ],
    )
    fallback = tag("noscript", tag("p", "The cloud needs JavaScript. ", description))
    title = f"The {nouns(facts).rows} in space"
    return _figure(join([canvas, fallback]), title, text, _legend(), buttons, keys)


def _image(image: ImageFacts, facts: Facts) -> Html:
    outliers, pixels = facts["answer"]["outliers"], facts["data"]["n_rows"]
    size = f"{count(image['width'])} × {count(image['height'])} pixels"
    scene = tag("img", src=image["scene"], alt=f"The scene in grey, {size}: mean of all bands.")
    mask = tag(
        "img",
        src=image["mask"],
        class_="mask",
        alt=f"{count(outliers)} of {count(pixels)} pixels are marked as outliers.",
    )
    switch = tag(
        "label",
        tag("input", type="checkbox", checked=True, data_mask=True),
        " show the outliers",
        class_="switch",
    )
    smaller = ""
    if image["factor"] > 1:
        smaller = f" Each pixel of the picture stands for {image['factor']} × {image['factor']}."
    empty = math.prod(facts["data"]["shape"]) - pixels
    no_data = f" {count(empty)} without data are black." if empty else ""
    return _figure(
        tag("div", scene, mask, class_="scene"),
        "Where the outliers are",
        f"{count(outliers)} of {count(pixels)} pixels with data ({size}).{no_data}{smaller}",
        switch,
    )
