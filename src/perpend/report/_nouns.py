"""What rows and columns are called: an image has pixels and bands, a cloud points."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from perpend.report._facts import Facts


class Nouns(NamedTuple):
    """The words for one row and one column; both make their plural with an s."""

    row: str = "row"
    column: str = "column"

    @property
    def rows(self) -> str:
        """Several rows."""
        return f"{self.row}s"

    @property
    def columns(self) -> str:
        """Several columns."""
        return f"{self.column}s"


NOUNS = {"image": Nouns("pixel", "band"), "cloud": Nouns("point", "coordinate")}


def nouns(facts: "Facts") -> Nouns:
    """Return the words that fit the facts of a page."""
    return nouns_of(facts["data"]["kind"], facts["data"]["n_columns"])


def nouns_of(kind: str, n_columns: int) -> Nouns:
    """Return the words that fit the kind of data; points with more than a place have columns."""
    found = NOUNS.get(kind, Nouns())
    return found._replace(column="column") if kind == "cloud" and n_columns > 3 else found
