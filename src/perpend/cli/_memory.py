"""How much memory a fit needs, about, and how much it may have; and how many processors."""

import os
from typing import TYPE_CHECKING

from perpend.exceptions import TooLargeError

if TYPE_CHECKING:
    from perpend.formats import Dataset

PER_ROW = 120  # bytes: distances, weights, labels and probabilities, with what makes them
PER_PAIR = 100  # bytes for a pair of columns: a dozen square matrices
PER_AXES = 500  # the same for the axes that a search has seen, in the span of the rows
STARTS = 64  # directions that are followed at once, generously
SAMPLE = 4 * 4096, 4 * 24  # rows, and rows for a column, up to which all rows are asked at once
BASE = 24 << 20  # buffers, and the laws of distances for rows of many lengths


def fit_memory(n: int, D: int, itemsize: int, *, affine: bool) -> int:
    """Bytes that a fit takes at its peak beside the rows themselves, as an upper estimate.

    A copy with rows of norm one, or lifted rows where the subspace may be affine; what the descents
    keep for each row and start, a few numbers for each row, and matrices of D x D.
    """
    from perpend.rows.array import MEMORY_BUDGET

    rows = n * D * itemsize
    asked = min(n, max(SAMPLE[0], SAMPLE[1] * D))
    kept = min(asked * (D + 2 * STARTS) * 8, MEMORY_BUDGET)
    copy = rows if rows <= MEMORY_BUDGET else 0
    if affine:
        copy = n * (D + 1) * itemsize
    squares = PER_PAIR * D * D + PER_AXES * min(n, D) ** 2
    return BASE + copy + kept + PER_ROW * n + squares


def limit(asked: int | None) -> int:
    """The limit in bytes: what the user asked for, or 80 % of what is free."""
    from perpend.formats._memory import memory_limit

    return memory_limit() if asked is None else asked


def check_fit(data: "Dataset", asked: int | None, *, affine: bool) -> None:
    """Refuse a fit that would need more than the limit."""
    n, D = data.X.shape
    needed, allowed = fit_memory(n, D, data.X.itemsize, affine=affine), limit(asked)
    if needed > allowed:
        whose = "80 % of the free memory" if asked is None else "--memory-limit"
        raise TooLargeError(
            f"{data.source}: a fit needs about {in_bytes(needed)} beside the data, and the limit "
            f"is {in_bytes(allowed)} ({whose}). Take fewer rows, fewer --columns, or raise "
            "--memory-limit."
        )


def in_bytes(n: int) -> str:
    """Size for people."""
    from perpend.formats._checks import in_bytes

    return in_bytes(n)


def processors() -> int:
    """Return how many processors this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1
