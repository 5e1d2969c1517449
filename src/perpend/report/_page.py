"""The page as a whole: one file that needs nothing else.

The content security policy lets the browser run and apply exactly the script and the style that are
part of the page, by their hashes, show pictures that are inside it, and fetch nothing at all.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from perpend.report import _equations, _figures, _sections, _tables
from perpend.report._facts import Facts
from perpend.report._html import Html, data_script, tag
from perpend.report._text import short

LINKS = (
    ("evidence", "Evidence"),
    ("pictures", "Pictures"),
    ("outliers", "Outliers"),
    ("equation", "Equation"),
    ("how", "How"),
    ("next", "Next"),
)


def page(facts: Facts) -> str:
    """Return the page about an answer."""
    style, script = _asset("page.css"), _asset("page.js")
    makers = (
        _sections.evidence,
        _figures.pictures,
        _tables.outliers,
        _equations.equation,
        _sections.how,
        _sections.what_next,
    )
    parts = [section for make in makers if (section := make(facts)) is not None]
    links = [
        tag("li", tag("a", label, href=f"#{key}"))
        for key, label in LINKS
        if any(part.startswith(f'<section id="{key}"') for part in parts)
    ]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content="perpend"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{short(facts['title'], 80)} · perpend report"),
        tag("style", style),
    )
    body = tag(
        "body",
        tag("a", "Skip to the evidence", href="#evidence", class_="skip"),
        _sections.header(facts),
        tag("nav", tag("ul", links), aria_label="Parts of this page"),
        tag("main", parts),
        tag(
            "footer",
            tag(
                "p",
                "Made by perpend. This page holds everything it shows and asks the "
                "network for nothing.",
            ),
        ),
        data_script("report-data", _for_script(facts)),
        tag("script", script),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _for_script(facts: Facts) -> dict[str, object]:
    """Return what the script draws from."""
    cloud = facts["pictures"]["cloud"]
    names = facts["data"]["columns"]
    distances = facts["distances"]
    totals = None
    if distances is not None:
        pairs = zip(distances["inliers"], distances["outliers"], strict=True)
        expected = [*(distances["expected_inliers"] or [0.0])]
        expected += distances["expected_outliers"] or []
        totals = {
            "low": distances["low"],
            "step": distances["step"],
            "totals": [a + b for a, b in pairs],
            "expected": max(expected),
            "threshold": facts["answer"]["threshold"],
        }
    return {
        "distances": totals,
        "cloud": None
        if cloud is None
        else {**cloud, "names": [short(names[j], 20) for j in cloud["axes"]]},
    }


@cache
def _asset(name: str) -> Html:
    """Return the page's own style or script, which is markup by right."""
    return Html((files("perpend.report") / name).read_text(encoding="utf-8"))


def _policy(style: str, script: str) -> str:
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
