"""The lines of the table of methods, without Sphinx.

A card is ``docs/methods/NAME.md`` with NAME the class. Its head (front matter) has one line for
each of `FIELDS`. A method that has no card yet is described by its class.
"""

import inspect
from pathlib import Path

FIELDS = ("solves", "given", "cost", "better")
TITLES = ("method", "solves", "you must give", "cost of a step", "use it when")


def heads(folder: Path) -> dict[str, dict[str, str]]:
    """Return the heads of all cards, by the name of the method."""
    return {path.stem: _head(path) for path in sorted(folder.glob("*.md")) if path.stem != "index"}


def _head(path: Path) -> dict[str, str]:
    _, head, _ = path.read_text(encoding="utf-8").split("---\n", 2)
    lines = [line.partition(": ") for line in head.splitlines()]
    return {name: value.strip().strip('"') for name, _, value in lines}


def check(folder: Path) -> list[str]:
    """Return what is wrong with the cards, one sentence each."""
    from perpend import _METHODS

    cards = heads(folder)
    wrong = [f"{name}.md is the card of no method." for name in sorted(set(cards) - set(_METHODS))]
    for name, head in cards.items():
        wrong += [f"{name}.md says nothing about {f!r}." for f in FIELDS if not head.get(f)]
    return wrong


def table(folder: Path) -> list[str]:
    """Return the lines of the table in Markdown: one for each method, those with a card first."""
    from perpend import _METHODS

    cards = heads(folder)
    lines = [_line(TITLES), _line(["---"] * len(TITLES))]
    for name, head in cards.items():
        lines.append(_line([f"[{name}](/methods/{name}.md)", *(head.get(f, "") for f in FIELDS)]))
    return lines + [_line(_described(name)) for name in _METHODS if name not in cards]


def _described(name: str) -> list[str]:
    import perpend

    cls = getattr(perpend, name)
    default = inspect.signature(cls).parameters["codimension"].default
    given = "nothing" if default == "auto" else "the codimension"
    return [f"`{name}`", (cls.__doc__ or "").partition("\n")[0].rstrip("."), given, "", ""]


def _line(cells: "list[str] | tuple[str, ...]") -> str:
    return f"| {' | '.join(cells)} |"
