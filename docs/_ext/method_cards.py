"""```{method-table}``` and ```{method-facts} NAME``` in Markdown: those of `method_rows`.

What is wrong with a card is a warning, and warnings end the build.
"""

from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from method_rows import check, facts, table
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)


class _Lines(SphinxDirective):
    """Lines of Markdown that are made anew in every build."""

    def lines(self) -> list[str]:
        """Return the lines."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Parse the lines."""
        self.env.note_reread()  # the registry and the cards may have changed, the page has not
        parent = nodes.Element()
        self.state.nested_parse(StringList(self.lines(), source="methods"), 0, parent)
        return parent.children


class MethodTable(_Lines):
    """```{method-table}``` in Markdown: one line for each method of the registry."""

    def lines(self) -> list[str]:
        """Return the table."""
        folder = Path(self.env.srcdir) / "methods"
        for sentence in check(folder):
            logger.warning(sentence, location=self.get_location())
        return table(folder)


class MethodFacts(_Lines):
    """```{method-facts} NAME``` in Markdown: what a method needs, does and costs."""

    required_arguments = 1

    def lines(self) -> list[str]:
        """Return the facts of the method."""
        return facts(self.arguments[0])


def setup(app: Sphinx) -> dict[str, object]:
    """Tell Sphinx about the directives."""
    app.add_directive("method-table", MethodTable)
    app.add_directive("method-facts", MethodFacts)
    return {"parallel_read_safe": True}
