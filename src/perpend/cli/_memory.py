"""How much memory a fit needs and may use."""

from typing import TYPE_CHECKING, Any

from perpend.exceptions import TooLargeError

if TYPE_CHECKING:
    from perpend.formats import Dataset

PER_ROW = 120  # bytes: distances, weights, labels and probabilities, and their buffers
PER_PAIR = 100  # bytes for a pair of columns: a dozen square matrices
PER_AXES = 500  # the same for the axes that a search has tried, in the span of the rows
STARTS = 64  # descents that run at once; an upper estimate
SUBSAMPLE = 4 * 4096, 4 * 24  # rows, and rows per column: larger data is searched in a subsample
WORKING_SET = 1 << 30  # bytes: rows that take more, with their copies, are read block by block
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


def fits(data: "Dataset", given: int | None, *, affine: bool, scaled: bool) -> bool:
    """Whether a fit of rows in memory is within the limit."""
    return _needed(data, affine=affine, scaled=scaled) <= limit(given)


def limit(given: int | None) -> int:
    """Return the limit in bytes: the given one, or 80 % of the free memory."""
    from perpend.formats._memory import memory_limit

    return memory_limit() if given is None else given


def check_fit(data: "Dataset", given: int | None, *, affine: bool, scaled: bool) -> None:
    """Refuse a fit that would need more than the limit."""
    needed, allowed = _needed(data, affine=affine, scaled=scaled), limit(given)
    if needed > allowed:
        whose = "80 % of the free memory" if given is None else "--memory-limit"
        raise TooLargeError(
            f"{data.source}: a fit needs about {in_bytes(needed)} besides the data, and the limit "
            f"is {in_bytes(allowed)} ({whose}). Take fewer rows, fewer --columns, or raise "
            "--memory-limit."
        )


def _needed(data: "Dataset", *, affine: bool, scaled: bool) -> int:
    n, D = data.X.shape
    needed = fit_memory(n, D, data.X.itemsize, affine=affine)
    return int(needed + (data.X.nbytes if scaled else 0))


def working_set(given: int | None) -> int:
    """Return the bytes that rows and their copies may take before they are read block by block."""
    return WORKING_SET if given is None else given


def check_blocks(data: "Dataset", given: int | None, model: Any) -> None:
    """Refuse a fit of rows that are read block by block, if even a sample would need too much."""
    from perpend.rows.plan import Fit, check_search

    check_search(data.X.shape, data.X.dtype.itemsize, working_set(given), Fit.of(model))


def in_bytes(n: int) -> str:
    """Return a size with its unit."""
    from perpend.formats._checks import in_bytes  # which loads NumPy

    return in_bytes(n)
