"""What a page says, read back from its markup."""

import html
import re
from typing import NamedTuple

from perpend.report._page import page

SIGNS = {"good": True, "bad": False, "note": None}


class Step(NamedTuple):
    why: str
    how: str


class Evidence(NamedTuple):
    what: str
    found: str
    chance: str
    meaning: str
    good: bool | None


def plain(markup: str) -> str:
    """Return the text of markup, its spaces as a browser shows them."""
    return html.unescape(re.sub(r"[ \n]+", " ", re.sub(r"<[^>]*>", "", markup)).strip())


def verdict(facts) -> str:
    return plain(re.search(r'<p class="verdict">(.*?)</p>', page(facts), re.DOTALL)[1])


def tiles(facts) -> list[tuple[str, str, str]]:
    found = re.findall(r"<dt>(.*?)</dt><dd><b>(.*?)</b><small>(.*?)</small>", page(facts))
    return [tuple(map(plain, tile)) for tile in found]


def evidence_rows(facts) -> list[Evidence]:
    row = r'<span class="sign (\w+)"[^>]*>.</span>(.*?)</th>' + 3 * r"<td[^>]*>(.*?)</td>"
    found = re.findall(row, page(facts), re.DOTALL)
    return [Evidence(*map(plain, texts), SIGNS[sign]) for sign, *texts in found]


def next_steps(facts) -> list[Step]:
    step = r'<li><p>(.*?)</p><pre tabindex="0"><code>(.*?)</code></pre></li>'
    found = re.findall(step, page(facts), re.DOTALL)
    return [Step(plain(why), html.unescape(how)) for why, how in found]
