"""How much memory a fit needs and may use."""

from typing import TYPE_CHECKING

from perpend.exceptions import TooLargeError

if TYPE_CHECKING:
    from perpend.formats import Dataset

PER_ROW = 120  # bytes: distances, weights, labels and probabilities, and their buffers
PER_PAIR = 100  # bytes for a pair of columns: a dozen square matrices
PER_AXES = 500  # the same for the axes that a search has tried, in the span of the rows
STARTS = 64  # descents that run at once; an upper estimate
SUBSAMPLE = 4 * 4096, 4 * 24  # rows, and rows per column: larger data is searched in a subsample
BASE = 24 << 20  # buffers, and the laws of distances for rows of many lengths


def fit_memory(n: int, D: int, itemsize: int, *, affine: bool) -> int:
    """Return the bytes that a fit needs at its peak beside the rows, as an upper estimate.

    They hold a copy with rows of norm one (lifted rows if the subspace may be affine), what the
    descents keep for each row and start, a few numbers for each row, and matrices of D x D.
    """
    from perpend.rows.array import MEMORY_BUDGET

    rows = n * D * itemsize
    searched = min(n, max(SUBSAMPLE[0], SUBSAMPLE[1] * D))
    kept = min(searched * (D + 2 * STARTS) * 8, MEMORY_BUDGET)
    copy = rows if rows <= MEMORY_BUDGET else 0
    if affine:
        copy = n * (D + 1) * itemsize
    squares = PER_PAIR * D * D + PER_AXES * min(n, D) ** 2
    return BASE + copy + kept + PER_ROW * n + squares


def limit(given: int | None) -> int:
    """Return the limit in bytes: the given one, or 80 % of the free memory."""
    from perpend.formats._memory import memory_limit

    return memory_limit() if given is None else given


def check_fit(data: "Dataset", given: int | None, *, affine: bool, scaled: bool) -> None:
    """Refuse a fit that would need more than the limit."""
    n, D = data.X.shape
    needed, allowed = fit_memory(n, D, data.X.itemsize, affine=affine), limit(given)
    needed += data.X.nbytes if scaled else 0
    if needed > allowed:
        whose = "80 % of the free memory" if given is None else "--memory-limit"
        raise TooLargeError(
            f"{data.source}: a fit needs about {in_bytes(needed)} beside the data, and the limit "
            f"is {in_bytes(allowed)} ({whose}). Take fewer rows, fewer --columns, or raise "
            "--memory-limit."
        )


def in_bytes(n: int) -> str:
    """Return a size with its unit."""
    from perpend.formats._checks import in_bytes  # which loads NumPy

    return in_bytes(n)
