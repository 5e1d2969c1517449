"""The page as a whole: one file that needs nothing else.

The words and the markup are in the templates, which escape everything that comes from the data. The
content security policy allows exactly the page's own script and style, by their hashes, and
pictures inside the page. Nothing is fetched.
"""

import base64
import hashlib
import math
from functools import cache, partial
from importlib.resources import files
from itertools import pairwise
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from perpend.plots._picture import Bars, Line, Picture
from perpend.plots._words import count, factor, number, plural
from perpend.report import _words
from perpend.report._equations import constants, equations, mean
from perpend.report._svg import coordinate, drawing
from perpend.structure import SURE

SIZES = {"distances": (720.0, 320.0), "view": (520.0, 320.0)}  # pixels; others have the default
DRAWN = ("distances", "view", "profile", "directions", "spread")


def page(facts: _words.Facts) -> str:
    """Return the page about a fit."""
    facts = _words.readable(facts)
    estimate = facts["estimate"]
    style, script = _asset("page.css"), _asset("page.js")
    stored = facts["pictures"]
    pictures = {key: Picture.restored(stored[key]) for key in DRAWN if stored[key] is not None}
    return _environment().get_template("page.html").render(
        facts=facts,
        estimate=estimate,
        data=facts["data"],
        say=_words.nouns(facts["data"]["kind"], facts["data"]["n_columns"]),
        sure=SURE,
        level=_words.level(estimate["confidence"]),
        inside=_words.inside(facts),
        misses_origin=_words.misses_origin(estimate),
        confidence=_words.confidence_text(estimate["confidence"]),
        doubts=_words.doubts(facts),
        others=_words.others(facts),
        command=partial(_words.command, facts),
        fit=partial(_words.fit_code, facts),
        drawings={
            key: drawing(picture, key, zoom=key == "distances", size=SIZES.get(key, (460.0, 270.0)))
            for key, picture in pictures.items()
        },
        outliers=(facts["outliers"] or {}).get("rows"),
        equations=equations(facts),
        constants=constants(facts),
        without=facts.get("without_constants"),
        mean=mean(facts),
        timings=", ".join(f"{_words.short(k, 20)} {v:.2f} s" for k, v in facts["timings"].items()),
        for_script={
            "distances": _histogram(pictures.get("distances"), estimate["threshold"]),
            "cloud": stored["cloud"],
        },
        policy=_policy(style, script),
        style=style,
        script=script,
        **_words.LIMITS,
    )  # fmt: skip


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("perpend.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    shown = (
        _words.confidence_text,
        _words.digits_needed,
        _words.moved,
        _words.percent,
        _words.png,
        _words.short,
    )
    for function in (*shown, _words.with_article, coordinate, count, factor, number, plural):
        made.filters[function.__name__] = function
    made.globals["column_name"] = _words.column_name
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return made


def _histogram(picture: Picture | None, threshold: float) -> dict[str, Any] | None:
    """Return what the script needs to zoom the distances."""
    if picture is None:
        return None
    bars = [layer for layer in picture.layers if isinstance(layer, Bars)]
    curves = [max(layer.y) for layer in picture.layers if isinstance(layer, Line)]
    totals = [height for layer in bars for height in layer.heights]
    borders = sorted({math.log10(border) for layer in bars for border in layer.borders})
    step = max(b - a for a, b in pairwise(borders))  # bars at both ends may be narrower
    return {
        "low": borders[1] - step,
        "step": step,
        "totals": totals,
        "expected": max(curves, default=0.0),
        "threshold": max(threshold, picture.x.low),
    }


@cache
def _asset(name: str) -> Markup:
    """Return the page's own style or script, which is not escaped."""
    return Markup((files("perpend.report") / name).read_text(encoding="utf-8"))


def _policy(style: str, script: str) -> str:
    digests = (hashlib.sha256(content.encode()).digest() for content in (style, script))
    style, script = (f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        f"default-src 'none'; style-src {style}; script-src {script}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
