"""The table of methods, from the registry of methods and the head of each method's card.

A card is ``docs/methods/NAME.md`` with NAME the class. Its head (front matter) has one line for
each of `FIELDS`. A method without a card, or a card without a method, is a warning, and warnings
end the build.
"""

from collections.abc import Sequence
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

FIELDS = ("solves", "told", "cost", "better")
TITLES = ("method", "solves", "you must give", "cost of a step", "use it when")

logger = logging.getLogger(__name__)


def heads(folder: Path) -> dict[str, dict[str, str]]:
    """Return the heads of all cards, by the name of the method."""
    return {path.stem: _head(path) for path in sorted(folder.glob("*.md")) if path.stem != "index"}


def _head(path: Path) -> dict[str, str]:
    _, head, _ = path.read_text(encoding="utf-8").split("---\n", 2)
    lines = [line.partition(": ") for line in head.splitlines()]
    return {name: value.strip().strip('"') for name, _, value in lines}


def check(folder: Path) -> list[str]:
    """Return what is wrong with the cards, one sentence each."""
    import perpend.methods  # noqa: F401  fills the registry
    from perpend.estimator import METHODS

    ours = {name for name, method in METHODS.items() if method.__module__.startswith("perpend.")}
    cards = heads(folder)
    wrong = [f"The method {name} has no card." for name in sorted(ours - set(cards))]
    wrong += [f"{name}.md is the card of no method." for name in sorted(set(cards) - ours)]
    for name, head in cards.items():
        wrong += [f"{name}.md says nothing about {f!r}." for f in FIELDS if not head.get(f)]
    return wrong


class MethodTable(SphinxDirective):
    """```{method-table}``` in Markdown: one line for each method of the registry."""

    def run(self) -> list[nodes.Node]:
        """Build the table."""
        self.env.note_reread()  # the registry and the cards may have changed, the page has not
        folder = Path(self.env.srcdir) / "methods"
        for sentence in check(folder):
            logger.warning(sentence, location=self.get_location())
        lines = [_row(TITLES), _row(["---"] * len(TITLES))]
        for name, head in heads(folder).items():
            lines.append(
                _row([f"[{name}](/methods/{name}.md)", *(head.get(f, "") for f in FIELDS)])
            )
        content = StringList(lines, source="methods")
        parent = nodes.Element()
        self.state.nested_parse(content, 0, parent)
        return parent.children


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def setup(app: Sphinx) -> dict[str, object]:
    """Tell Sphinx about the directive."""
    app.add_directive("method-table", MethodTable)
    return {"parallel_read_safe": True}
