"""How a text table is written, detected in its first lines: encoding, separator, where it begins.

Spreadsheets write `sep=;` in the first line, and programs a title or settings above the table or
the units of the columns under their names. Such lines are no rows, and are left out.
"""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from perpend.formats._dataset import Options
from perpend.formats._notation import Notation, is_missing

DELIMITERS = ("\t", ";", ",")  # the comma last: it may also be a decimal comma
SPACE = " "  # stands for white space of any length
PLAIN_TEXT = ("txt", "xyz")  # formats whose cells may be separated by it
SAMPLE_BYTES = 1 << 16  # read ahead to find the delimiter,
SAMPLE_LINES = 10  # in so many lines
MOST_SKIPPED = 30  # lines above a table that are skipped by themselves
LEAST_ROWS = 2  # of equal length that such lines are told by
UTF_8 = "utf-8-sig"
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)  # as Excel writes it


class Dialect(NamedTuple):
    """How the rows of a text are written."""

    delimiter: str
    is_plain: bool  # remarks, lines that begin with #, may be anywhere
    notation: Notation = Notation()
    transposed: bool = False  # the columns of the text are the rows
    encoding: str = UTF_8
    skipped: frozenset[int] = frozenset()  # lines, from 1, that are no rows
    notes: tuple[str, ...] = ()  # what users should know about that


def find_dialect(sample: bytes, options: Options) -> Dialect:
    """Find the dialect of a text from its first bytes and the name of its format."""
    form, notation = options.format, options.notation
    is_plain, comma = form in PLAIN_TEXT, notation.decimal != ","
    encoding = encoding_of(sample)
    text = decoded(sample, encoding)
    lines = text.splitlines()
    notes = []
    if encoding not in (UTF_8, "utf-16"):
        said = "is not UTF-8, and was read as Windows-1252 (Latin-1)"
        said = "has no byte order mark, and was read as UTF-16" if "16" in encoding else said
        notes.append(f"the text {said}")
    given = SEPARATOR_LINE.fullmatch(lines[0]) if lines and options.skip_rows is None else None
    first = 1 if given else (options.skip_rows or 0)
    rest = "\n".join(lines[first:])
    whole = len(sample) == SAMPLE_BYTES
    if form == "tsv":
        delimiter = "\t"
    elif given:
        delimiter = given[1]
    else:
        delimiter = _find_delimiter(rest, spaces=is_plain, comma=comma, cut_off=whole)
    dialect = Dialect(delimiter, is_plain, notation, options.transpose, encoding)
    skipped = set(range(1, first + 1))
    if delimiter != SPACE and form != "xyz":
        rows = _first_rows(lines, first, dialect, cut_off=whole)
        above = _above(rows) if options.skip_rows is None else []
        units = None if options.transpose else _units(rows[len(above) :], notation)
        if above:
            skipped |= set(range(first + 1, above[-1][0] + 1))
            notes.append(
                f"left out the lines above the table, up to line {above[-1][0]} "
                f'("{_short(above[0][1])}")'
            )
        if units is not None:
            skipped.add(units[0])
            notes.append(
                f'left out line {units[0]}, which has units and no numbers ("{_short(units[1])}")'
            )
    return dialect._replace(skipped=frozenset(skipped), notes=tuple(notes))


def encoding_of(sample: bytes) -> str:
    """Return the encoding of a text by its first bytes."""
    for mark, encoding in MARKS.items():
        if sample.startswith(mark):
            return encoding
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) > len(sample) / 4 and min(even, odd) <= len(sample) / 100:
        return "utf-16-be" if even > odd else "utf-16-le"
    decoder = codecs.getincrementaldecoder(UTF_8)()
    try:
        decoder.decode(sample)  # a last letter may be cut off
    except UnicodeDecodeError:
        return "cp1252" if _is_text(sample) else UTF_8
    return UTF_8


def _is_text(sample: bytes) -> bool:
    """Whether bytes that are not UTF-8 are likely text in Windows-1252: few control characters."""
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return not any(ord(letter) < 32 and letter not in "\t\r\n\f" for letter in text)


def decoded(sample: bytes, encoding: str) -> str:
    """Return the text of the first bytes."""
    return codecs.getincrementaldecoder(encoding)("replace").decode(sample)


def n_cells(sample: bytes, dialect: Dialect) -> int:
    """Return an upper bound on the cells of a piece of text."""
    text = decoded(sample, dialect.encoding)
    if dialect.delimiter == SPACE:
        return len(text.split()) + 1
    return text.count(dialect.delimiter) + text.count("\n") + 1


def _first_rows(
    lines: list[str], first: int, dialect: Dialect, *, cut_off: bool
) -> list[tuple[int, list[str]]]:
    """Return the first rows, each with the number of its line, without blank lines and remarks."""
    some = lines[first : first + MOST_SKIPPED + SAMPLE_LINES]
    if cut_off and len(some) == len(lines) - first:
        some = some[:-1]
    reader = csv.reader((f"{line}\n" for line in some), delimiter=dialect.delimiter, strict=True)
    found = []
    try:
        for cells in reader:
            if "".join(cells).strip() and not cells[0].lstrip().startswith("#"):
                found += [(first + reader.line_num, cells)]
    except csv.Error:  # said by line when all is read
        pass
    return found


def _above(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Return the rows above a table: shorter than all that follow, which are equally long."""
    widths = [len(cells) for _, cells in rows]
    if len(widths) <= LEAST_ROWS or widths[-1] < 2:
        return []
    n = len(widths)
    while n and widths[n - 1] == widths[-1]:
        n -= 1
    shorter = all(width < widths[-1] for width in widths[:n])
    # A row in the table that is too short comes after rows of full length.
    return rows[:n] if shorter and len(widths) - n >= LEAST_ROWS else []


def _units(rows: list[tuple[int, list[str]]], notation: Notation) -> tuple[int, list[str]] | None:
    """Return the row under the names if it has text where all rows below it have numbers."""
    if len(rows) < 2 + LEAST_ROWS or len({len(cells) for _, cells in rows}) > 1:
        return None
    (_, names), (line, units), *below = rows
    filled = [j for j, cell in enumerate(units) if not is_missing(cell)]
    if not filled or any(notation.is_value(cell) for cell in (*names, *units)):
        return None
    for j in filled:
        there = [cells[j] for _, cells in below if not is_missing(cells[j])]
        if not there or not all(map(notation.is_value, there)):
            return None
    return line, units


def _short(cells: list[str]) -> str:
    text = ", ".join(cell.strip() for cell in cells)
    return text if len(text) <= 40 else f"{text[:37]}..."


def tidied(text: Iterable[str], dialect: Dialect) -> Iterator[str]:
    r"""Lines without remarks, and with single spaces where these separate the cells.

    A remark becomes a blank line, so that lines can still be counted.

    >>> list(tidied(["# x y\n", " 1   2\t3 \r\n"], Dialect(SPACE, is_plain=True)))
    ['\n', '1 2 3\n']
    """
    for number, line in enumerate(text, start=1):
        is_remark = dialect.is_plain and line.lstrip().startswith("#")
        if is_remark or number in dialect.skipped:
            yield "\n"
        elif dialect.delimiter == SPACE:
            yield SPACE.join(line.split()) + "\n"
        else:
            yield line


def _find_delimiter(text: str, *, spaces: bool, comma: bool, cut_off: bool) -> str:
    """Find the separator that occurs equally often in each of the first lines, or in most of them.

    Where the comma is the decimal mark, it separates cells only if nothing else does and numbers
    are in quotes.
    """
    quotes = re.search(r'"[-+]?\d+,\d+"', text) is not None
    text = re.sub(r'"[^"]*"', "", text)
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]
    if cut_off and len(lines) > 1:
        lines.pop()
    usual = DELIMITERS if comma or quotes else DELIMITERS[:-1]
    for delimiter in usual:
        counts = {line.count(delimiter) for line in lines[:SAMPLE_LINES]}
        if len(counts) == 1 and counts != {0}:
            return delimiter
    first = lines[0] if lines else ""
    some = lines[: MOST_SKIPPED + SAMPLE_LINES]
    below = {mark: Counter(line.count(mark) for line in some).most_common(1) for mark in usual}
    for mark, most in below.items():  # lines above the table, or uneven rows
        if most and most[0][0] > 0 and 2 * most[0][1] > len(some):
            return mark
    if spaces and not any(delimiter in first.strip() for delimiter in usual):
        return SPACE
    return max(reversed(usual), key=first.count)  # uneven rows: reported by line when read
