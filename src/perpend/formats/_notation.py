"""Numbers as people write them in text: decimal commas, thousands separators, missing values."""

import re
from typing import NamedTuple

# Words for a missing value: those of pandas and R, and the question mark of older collections. Case
# matters: "Na" is sodium.
MISSING_WORDS = frozenset(
    ("", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "NaN", "nan", "None", "<NA>", "?")
)
SEPARATORS = (",", ".", " ", "'")  # of thousands; a blank also stands for those that do not break
BLANKS = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2019": "'"})
ADVICE = {  # about a number in another notation than the one in use
    r"[-+]?\d{1,3}(\.\d{3})+,\d+": 'Add decimal="," and thousands=".".',
    r"[-+]?\d{1,3}(,\d{3})+\.\d+|[-+]?\d{1,3}(,\d{3}){2,}": 'Add thousands=",".',
    r"[-+]?\d{1,3},\d{3}": 'Add thousands="," if this is a thousand or more, decimal="," if it is a'
    " decimal comma.",
    r"[-+]?\d+,\d+([eE][-+]?\d+)?": 'If this is a decimal comma, add decimal=",".',
    r"[-+]?\d{1,3}( \d{3})+([.,]\d+)?": 'If blanks separate thousands, add thousands=" ".',
    r"[-+]?\d{1,3}('\d{3})+([.,]\d+)?": 'Add thousands="\'".',
    r"[-+]?\d{1,3}(\.\d{3})+": 'If points separate thousands, add decimal="," and thousands=".".',
}


SIGNS = "$€£¥%"
MARKED = re.compile(
    rf"([-+]?)\s*([{SIGNS[:-1]}]?)\s*([-+]?[\d.,' ]*\d[\d.,' eE+-]*?)\s*([{SIGNS}]?)"
)


class Notation(NamedTuple):
    """How numbers are written."""

    decimal: str = "."
    thousands: str | None = None

    @property
    def makes_sense(self) -> bool:
        """Whether the two marks are known ones, and not the same."""
        known = self.decimal in (".", ",") and self.thousands in (None, *SEPARATORS)
        return known and self.thousands != self.decimal

    def plain(self, cell: str) -> str:
        """Return a number as Python writes it, and anything else as something that is no number.

        >>> Notation(",", ".").plain(" 1.234,5 "), Notation(",").plain("1.5"), Notation().plain("1")
        ('1234.5', '1.5?', '1')
        """
        if self == (".", None):
            return cell
        text = cell.strip().translate(BLANKS)
        if self.thousands is not None and self.thousands in text:
            groups = rf"([-+]?\d{{1,3}})((?:{re.escape(self.thousands)}\d{{3}})+)(\D.*)?"
            found = re.fullmatch(groups, text)
            if found is None:
                return f"{text}?"
            text = found[1] + found[2].replace(self.thousands, "") + (found[3] or "")
        if self.decimal != ".":
            text = f"{text}?" if "." in text else text.replace(self.decimal, ".")
        return text

    def floats(self, cells: list[str]) -> list[float] | None:
        """Read a row of numbers, all at once; None if there is anything else."""
        if "_" in "".join(cells):  # Python would read 2024_05 as 202405
            return None
        try:
            return list(map(float, cells if self == (".", None) else map(self.plain, cells)))
        except ValueError:
            return None

    def is_number(self, cell: str) -> bool:
        """Whether a cell is a number."""
        return self.floats([cell]) is not None

    def unmarked(self, cell: str) -> tuple[str, str]:
        """Return a number without its sign of a currency or of percent, and that sign.

        >>> Notation().unmarked("-$14.1"), Notation().unmarked("12 %"), Notation().unmarked("a%")
        (('-14.1', '$'), ('12', '%'), ('a%', ''))
        """
        found = MARKED.fullmatch(cell.strip().translate(BLANKS))
        if found is None or bool(found[2]) == bool(found[4]):  # none, or two
            return cell, ""
        bare = f"{found[1]}{found[3]}"
        return (bare, found[2] or found[4]) if self.is_number(bare) else (cell, "")

    def is_value(self, cell: str) -> bool:
        """Whether a cell is a number, perhaps with a sign of a currency or of percent."""
        return self.is_number(cell) or bool(self.unmarked(cell)[1])

    def advice(self, cell: str) -> str:
        """Say what to do about numbers in another notation; nothing for plain text."""
        text = cell.strip().translate(BLANKS)
        for pattern, advice in ADVICE.items():
            if re.fullmatch(pattern, text):
                return advice
        if self.decimal == "," and re.fullmatch(r"[-+]?\d*\.\d+([eE][-+]?\d+)?", text):
            return 'It has a decimal point, but decimal is ",". Use one of them everywhere.'
        parts = cell.split()
        if len(parts) > 1 and all(map(self.is_number, parts)):
            return "Separate the cells by commas, semicolons or tabs, or name the file .txt."
        return ""


def is_missing(cell: str) -> bool:
    """Whether a cell is empty, or a word for a missing value."""
    return cell.strip() in MISSING_WORDS
