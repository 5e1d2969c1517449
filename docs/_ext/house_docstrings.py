"""From the docstrings of this house to what numpydoc and Sphinx read.

- Named tuples and data classes say what a field is in a comment beside it, where a reader of the
  code needs it. These comments become the section "Attributes", unless there is one.
- Learned attributes end with an underscore, which Sphinx takes for a link: it is escaped.
"""

import inspect
import re
from dataclasses import is_dataclass
from typing import Any

from sphinx.application import Sphinx

FIELD = re.compile(r"^    (?P<name>[a-zA-Z]\w*): [^#]+?(?:  # (?P<text>.*))?$")
CODE = re.compile(r"(``[^`]*``|`[^`]*`)")
LEARNED = re.compile(r"\b([a-zA-Z]\w*)_(?=[\s,.;:)]|$)")


def fields(cls: type) -> list[tuple[str, str]]:
    """Return the names of the fields and what their comments say."""
    found: list[tuple[str, str]] = []
    for line in inspect.getsource(cls).splitlines():
        match = FIELD.match(line)
        if match:
            found.append((match["name"], match["text"] or ""))
        elif line.startswith("    def "):
            break
    return found


def _with_fields(what: str, obj: Any, lines: list[str]) -> None:
    is_record = hasattr(obj, "_fields") or is_dataclass(obj)
    if what != "class" or not is_record or "Attributes" in lines:
        return
    known = fields(obj)
    if known:
        lines += ["", "Attributes", "----------"]
        for name, text in known:
            lines += [name, "    " + text.replace("|", r"\|").replace("*", r"\*")]


def _escaped(line: str) -> str:
    """Escape underscores at the end of words, outside of code."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    name, colon, rest = line.partition(" : ")
    if not colon or name.startswith(" "):
        name, rest = "", line
    parts = CODE.split(rest)  # every second one is code
    parts[::2] = [LEARNED.sub(r"\1\\_", part) for part in parts[::2]]
    return name + (colon if name else "") + "".join(parts)


def _process(app: Sphinx, what: str, name: str, obj: Any, *rest: Any) -> None:
    del app, name
    _, lines = rest  # the options, and the docstring, to be changed in place
    _with_fields(what, obj, lines)
    lines[:] = [_escaped(line) for line in lines]


def setup(app: Sphinx) -> dict[str, object]:
    """Run before numpydoc, which turns sections into lists."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    return {"parallel_read_safe": True}
