"""Tables in plain text."""


def grid(heads: list[str], rows: list[list[str]]) -> str:
    """Align columns; in a row of two cells the second one may be as long as it likes.

    >>> print(grid(["method", "time", "x"], [["A", "10 s", "1"], ["B", "failed: no luck"]]))
    method  time  x
    A       10 s  1
    B       failed: no luck
    """
    whole = [row for row in rows if len(row) == len(heads)]
    widths = [max(map(len, column)) for column in zip(heads, *whole, strict=True)]
    widths[0] = max(widths[0], *(len(row[0]) for row in rows))
    lines = ["  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=False)) for row in rows]
    head = "  ".join(f"{c:<{w}}" for c, w in zip(heads, widths, strict=True))
    return "\n".join(line.rstrip() for line in [head, *lines])
