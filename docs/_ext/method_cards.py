"""```{method-table}``` in Markdown: the table of `method_rows`.

What is wrong with a card is a warning, and warnings end the build.
"""

from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from method_rows import check, table
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)


class MethodTable(SphinxDirective):
    """```{method-table}``` in Markdown: one line for each method of the registry."""

    def run(self) -> list[nodes.Node]:
        """Build the table."""
        self.env.note_reread()  # the registry and the cards may have changed, the page has not
        folder = Path(self.env.srcdir) / "methods"
        for sentence in check(folder):
            logger.warning(sentence, location=self.get_location())
        content = StringList(table(folder), source="methods")
        parent = nodes.Element()
        self.state.nested_parse(content, 0, parent)
        return parent.children


def setup(app: Sphinx) -> dict[str, object]:
    """Tell Sphinx about the directive."""
    app.add_directive("method-table", MethodTable)
    return {"parallel_read_safe": True}
