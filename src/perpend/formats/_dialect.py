"""The separator of the cells of a text table, detected in its first lines."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from perpend.formats._dataset import Options
from perpend.formats._notation import Notation

DELIMITERS = ("\t", ";", ",")  # the comma last: it may also be a decimal comma
SPACE = " "  # stands for white space of any length
PLAIN_TEXT = ("txt", "xyz")  # formats whose cells may be separated by it
SAMPLE_BYTES = 1 << 16  # read ahead to find the delimiter,
SAMPLE_LINES = 10  # in so many lines


class Dialect(NamedTuple):
    """How the rows of a text are written."""

    delimiter: str
    is_plain: bool  # remarks, lines that begin with #, may be anywhere
    notation: Notation = Notation()
    transposed: bool = False  # the columns of the text are the rows


def find_dialect(sample: bytes, options: Options) -> Dialect:
    """Find the dialect of a text from its first bytes and the name of its format."""
    form, notation = options.format, options.notation
    is_plain, comma = form in PLAIN_TEXT, notation.decimal != ","
    delimiter = "\t" if form == "tsv" else _find_delimiter(sample, spaces=is_plain, comma=comma)
    return Dialect(delimiter, is_plain, notation, options.transpose)


def n_cells(sample: bytes, dialect: Dialect) -> int:
    """Return an upper bound on the cells of a piece of text."""
    if dialect.delimiter == SPACE:
        return len(sample.split()) + 1
    return sample.count(dialect.delimiter.encode()) + sample.count(b"\n") + 1


def tidied(text: Iterable[str], dialect: Dialect) -> Iterator[str]:
    r"""Lines without remarks, and with single spaces where these separate the cells.

    A remark becomes a blank line, so that lines can still be counted.

    >>> list(tidied(["# x y\n", " 1   2\t3 \r\n"], Dialect(SPACE, is_plain=True)))
    ['\n', '1 2 3\n']
    """
    for line in text:
        if dialect.is_plain and line.lstrip().startswith("#"):
            yield "\n"
        elif dialect.delimiter == SPACE:
            yield SPACE.join(line.split()) + "\n"
        else:
            yield line


def _find_delimiter(sample: bytes, *, spaces: bool, comma: bool) -> str:
    """Find the separator that occurs equally often in each of the first lines.

    Where the comma is the decimal mark, it separates cells only if nothing else does and numbers
    are in quotes.
    """
    quotes = re.search(rb'"[-+]?\d+,\d+"', sample) is not None
    text = re.sub(r'"[^"]*"', "", sample.decode("utf-8-sig", errors="replace"))
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    if len(sample) == SAMPLE_BYTES and len(lines) > 1:
        lines.pop()  # cut off
    usual = DELIMITERS if comma or quotes else DELIMITERS[:-1]
    for delimiter in usual:
        counts = {line.count(delimiter) for line in lines[:SAMPLE_LINES]}
        if len(counts) == 1 and counts != {0}:
            return delimiter
    first = lines[0] if lines else ""
    if spaces and not any(delimiter in first.strip() for delimiter in usual):
        return SPACE
    return max(reversed(usual), key=first.count)  # uneven rows: reported by line when read
