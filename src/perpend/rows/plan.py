"""What a fit of rows that are not in memory takes: how often they are read, and memory beside them.

Both are said before the work begins, so they depend on sizes and parameters alone.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from perpend._typing import Auto
from perpend.exceptions import TooLargeError

SAMPLE_ROWS = 4096  # rows in the first sample,
SAMPLE_ROWS_PER_FEATURE = 24  # or so many for each feature, if that is more
WORTH_IT = 4  # times as many rows as in the sample there must be
NEXT_SAMPLE = 4  # the next sample, in units of the last

# How often all rows are read at most, if the fit to a sample is sure.
PASSES = 9  # check, units, sample, span, up to four steps, distances
PASSES_AFFINE = 14  # check, units, centre, sample, view, norms, up to four steps; labels and score
PASSES_EITHER = 18  # and where affine="auto" ends linear: sample, up to four steps, distances
PASSES_OF_BOTH = 3  # where outliers="both": a sample, the same for relations, scores
PASSES_OF_OTHERS = 6  # view, norms, step, distances, objective, labels

WINDOWS = 8  # of the limit: one is computed on, one read ahead, one may still be in use
HELD = 3  # windows: no more rows than these are not read again

BESIDE = 160 * 2**20  # bytes: of 300 MiB beside the limit, Python and its packages take the rest
SEARCHED = 8192, 20  # rows, or so many for each column, in which a structure is searched at most
COPIES = 3  # of these in float64, as measured: the rows, and what a weighted PCA makes of them
COPIES_AFFINE = 4  # and the rows as they were given
MATRICES = 300  # bytes for each pair of columns: axes, moments and what an eigenproblem takes
BUFFERS = 16 * 2**20  # bytes: blocks, and the law of directions


def sample_sizes(sample_size: int | Auto | None, n_rows: int, n_features: int) -> Iterator[int]:
    """Yield the sizes of the samples to try, one after the other, before all rows.

    >>> list(sample_sizes("auto", 100_000, 20))
    [4096, 16384]
    >>> [list(sample_sizes(size, 10_000, 20)) for size in ("auto", 5000, None)]
    [[], [5000], []]
    """
    size, least = n_rows if sample_size is None else sample_size, 1
    if size == "auto":
        size, least = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_FEATURE * n_features), WORTH_IT
    size = int(size)  # a small NumPy integer would overflow
    while least * size < n_rows:
        yield size
        size *= NEXT_SAMPLE


class Fit(NamedTuple):
    """The parameters of a fit of `DPCP` that say what it takes."""

    affine: bool | Auto = False
    outliers: str = "across"
    sample_size: int | Auto | None = "auto"

    @classmethod
    def of(cls, model: Any) -> "Fit":
        """Return those of a model; methods that draw no sample search all rows."""
        size = getattr(model, "sample_size", None)
        given = not isinstance(getattr(model, "init", ""), str)
        if given or getattr(model, "refine", None) is False:  # as `dpcp` does
            size = None
        return cls(model.affine, model.outliers, size)

    @property
    def passes(self) -> int:
        """How often all rows are read at most, if the fit to a sample is sure."""
        by = {"auto": PASSES_EITHER, True: PASSES_AFFINE, False: PASSES}
        return by[self.affine] + PASSES_OF_BOTH * (self.outliers == "both")

    def is_sampled(self, n_rows: int, n_features: int) -> bool:
        """Whether a sample of so many rows is searched first."""
        return any(True for _ in sample_sizes(self.sample_size, n_rows, n_features))

    def often(self, shape: tuple[int, int], more: int = 0) -> str:
        """Say how often rows of this shape are read, with so many passes beside those of the fit.

        An affine fit searches in memory: what it does not find costs larger samples, not passes.
        """
        at_most = f"at most {self.passes + more} times"
        others = f"plus at most {PASSES_OF_OTHERS} times for each further structure"
        if self.affine is True:
            return f"{at_most}, {others}, and once for each larger sample if the first is not sure"
        if self.is_sampled(*shape):
            return (
                f"{at_most} if the fit to a sample is sure, {others}. Otherwise they are read once "
                "per iteration, often some hundred times"
            )
        return (
            "once per iteration, as they are too few for a sample: often 20 to 50 times, and some "
            "hundred times if nothing is found"
        )


def search_bytes(n_rows: int, n_features: int, itemsize: int, fit: Fit) -> int:
    """Return the bytes that the search in a first sample takes, as an upper estimate.

    >>> [search_bytes(10**7, D, 4, Fit()) >> 20 for D in (10, 100, 1000)]
    [18, 39, 851]
    """
    D, first = n_features, next(sample_sizes(fit.sample_size, n_rows, n_features), 0)
    searched = min(n_rows, max(SEARCHED[0], SEARCHED[1] * D))
    return first * D * itemsize + search_in(searched, D, affine=bool(fit.affine))


def search_in(n_rows: int, n_features: int, *, affine: bool = False) -> int:
    """Return the bytes that a search in so many rows takes."""
    copies = COPIES_AFFINE if affine else COPIES
    return copies * n_rows * n_features * 8 + MATRICES * n_features**2 + BUFFERS


def is_held(shape: tuple[int, int], itemsize: int, limit: int) -> bool:
    """Whether rows are so few that they, and their unit vectors, stay in memory with a search."""
    n_bytes = shape[0] * shape[1] * itemsize
    needed = 2 * n_bytes + search_bytes(*shape, itemsize, Fit(affine=True))
    return n_bytes <= HELD * (limit // WINDOWS) and needed <= limit + BESIDE


def check_search(shape: tuple[int, int], itemsize: int, limit: int, fit: Fit) -> None:
    """Say before the work begins if the search in a sample needs more than the limit allows."""
    needed, D = search_bytes(*shape, itemsize, fit), shape[1]
    if needed > free_for_search(limit):
        raise TooLargeError(
            f"A fit to {D} columns searches in a sample in memory, with matrices of {D} x {D}: "
            f"about {needed >> 20} MiB. memory_limit={_text(limit)} is too small for that. "
            f"Raise it to {least_limit(needed)}MiB, or take fewer columns."
        )


def free_for_search(limit: int) -> int:
    """Return the bytes that a search may take beside two windows of rows."""
    return limit - 2 * (limit // WINDOWS) + BESIDE


def check_taken(n_rows: int, n_features: int, limit: int, *, affine: bool = False) -> None:
    """Say so if so many rows, which are needed in memory at once, are too many to be searched."""
    needed = search_in(n_rows, n_features, affine=affine)
    if needed > free_for_search(limit):
        raise TooLargeError(
            f"{n_rows} rows are needed in memory at once, and a search in them takes about "
            f"{needed >> 20} MiB: memory_limit={_text(limit)} is too small for that. Raise it to "
            f"{least_limit(needed)}MiB, or take fewer rows or columns."
        )


def least_limit(needed: int) -> int:
    """Return the least limit in MiB that leaves so many bytes to a search."""
    return -(-max(needed - BESIDE, 0) * WINDOWS // (WINDOWS - 2) // 2**20) + 1


def _text(limit: int) -> str:
    """Return a limit in MiB, or in bytes where it is less than one."""
    return f"{limit >> 20}MiB" if limit >= 2**20 else f"{limit} bytes"
