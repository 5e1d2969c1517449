"""A page as text, built so that text from data can never become markup.

`tag` makes an element from its children. A child that is a plain `str` is escaped; only what `tag`
itself returned, an `Html`, passes as it is. Attributes are always escaped. What could run code or
reach out is refused outright: event handlers, style attributes, and links that leave the page.
"""

import html
import json
import re
from collections.abc import Iterable
from typing import Any

NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
VOID = {"br", "img", "input", "link", "meta"}  # elements without an end tag
SAFE_LINKS = ("#", "data:image/png;base64,", "data:,")
# JSON inside a script element must not end that element, nor begin a comment.
IN_SCRIPT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """Return an element.

    A child may be None (left out), `Html`, text or a number (escaped), or an iterable of these. In
    the names of attributes an underscore stands for a hyphen, and one at the end is dropped. An
    attribute that is None or False is left out; True stands alone.

    >>> tag("p", "1 < 2", class_="a b")
    '<p class="a b">1 &lt; 2</p>'
    """
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an element.")
    pairs = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{pairs}>")
    return Html(f"<{name}{pairs}>{join(children)}</{name}>")


def join(children: Iterable[Any]) -> Html:
    """Return the children one after the other, escaped where they are not markup."""
    return Html("".join(_child(child) for child in children))


def data_script(identifier: str, content: Any) -> Html:
    """Return a script element that holds JSON and never runs.

    >>> data_script("d", "</script>")
    '<script type="application/json" id="d">"\\\\u003c/script\\\\u003e"</script>'
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)  # ASCII: no U+2028 either
    for character, escape in IN_SCRIPT.items():
        text = text.replace(character, escape)
    return tag("script", Html(text), type="application/json", id=identifier)


def readable(text: str) -> str:
    r"""Return text without what cannot be shown or encoded: control characters, lone surrogates.

    >>> readable("a\x00b\ud800c\u202e")
    'a�b�c�'
    """
    return "".join(c if c.isprintable() or c in "\n\t\u202f\u00a0" else "\ufffd" for c in text)


def _child(child: Any) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str):
        return html.escape(readable(child))
    if isinstance(child, int | float):
        return html.escape(str(child))
    return join(child)


def _attribute(key: str, value: Any) -> str:
    name = key.removesuffix("_").replace("_", "-")
    if not NAME.fullmatch(name) or name.lower().startswith("on") or name.lower() == "style":
        raise ValueError(f"{name!r} is no attribute that a page may have.")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = readable(str(value))
    if name.lower() in ("href", "src") and not text.startswith(SAFE_LINKS):
        raise ValueError(f"{name}={text[:40]!r} would lead out of the page.")
    return f' {name}="{html.escape(text)}"'
