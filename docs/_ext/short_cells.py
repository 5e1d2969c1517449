"""Short cells of tables, such as numbers, stay on one line: `2e-14` is not cut at its hyphen."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

SHORT = 10  # characters, as in "100 of 100"


class ShortCells(SphinxPostTransform):
    """Give short cells the class `short`, which the style sheet keeps on one line."""

    default_priority = 700
    formats = ("html",)

    def run(self) -> None:
        """Mark the cells of all tables of a page."""
        for cell in self.document.findall(nodes.entry):
            if len(cell.astext()) <= SHORT:
                cell["classes"].append("short")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_post_transform(ShortCells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
