"""Medians and quartiles of the columns of rows that are not in memory, exactly, in two passes."""

from typing import NamedTuple, TypeAlias

import numpy as np

from perpend._typing import Array
from perpend.rows.lazy import LazyRows

LEVELS = (0.25, 0.5, 0.75)
SAMPLE = 2**16  # rows that show about where the quartiles are
DEVIATIONS = 5.0  # of a quartile of the sample: it is beyond them with probability 6e-7
PER_ROW = 3 * 8 * DEVIATIONS  # bytes kept of a row and a column, over the root of SAMPLE, at most
PART_OF_LIMIT = 8  # of the memory limit may be kept; more columns need more passes


class Spread(NamedTuple):
    """Of each column."""

    quartiles: Array  # (3, D), NaN for a column without values
    deviation: Array  # (D,) standard deviation


def column_spread(X: LazyRows) -> Spread:
    """Return the quartiles of the columns, those of `numpy.quantile`, and standard deviations.

    NaN is left out. A sample brackets each quartile; then all values are counted below the bracket
    and at its ends, and those inside are kept: about one in a hundred. Rows on workers stay there.
    """
    n, D = X.shape
    size = min(SAMPLE, max(1, X.memory_limit // (PART_OF_LIMIT * 8 * max(1, D))))
    rng = np.random.default_rng(0)
    sample = X[np.unique(rng.integers(0, n, size))] if n > size else X[:]
    together = max(1, int(X.memory_limit / PART_OF_LIMIT / (PER_ROW * n / size**0.5)))
    found: list[tuple[list[float], float]] = []
    for first in range(0, D, together):
        places = range(first, min(first + together, D))
        columns = [_Column(sample[:, j], whole=n <= size) for j in places]
        for parts in X.map(_seen, first, [column.ends for column in columns]):
            for column, part in zip(columns, parts, strict=True):
                column.add(part)
        for j, column in zip(places, columns, strict=True):
            if not column.found:  # a sample that was far off: take all values
                values = np.concatenate(X.map(_values, j))
                column = _Column(values, whole=True)  # noqa: PLW2901
                column.add(_part(values, column.ends))
            found.append((column.quartiles, column.deviation))
    quartiles, deviations = zip(*found, strict=True)
    return Spread(np.array(quartiles).T, np.array(deviations))


Ends: TypeAlias = list[tuple[float, float]]
"""The ends of the bracket of each quartile."""


class _Part(NamedTuple):
    """What some rows say about one column."""

    n: int
    mean: float
    squares: float  # sum about the mean
    counts: list[tuple[int, int, int]]  # below each bracket, and at its two ends
    inside: list[Array]  # of each bracket


def _seen(rows: Array, first: int, ends: list[Ends]) -> list[_Part]:
    """Return what rows say about consecutive columns."""
    return [_part(rows[:, first + i], one) for i, one in enumerate(ends)]


def _values(rows: Array, j: int) -> Array:
    return np.array(rows[:, j])


def _part(x: Array, ends: Ends) -> _Part:
    x = x.astype(float)
    x = x[~np.isnan(x)]
    mean = float(x.mean()) if len(x) else 0.0
    counts, inside = [], []
    for low, high in ends:
        at_high = int(np.count_nonzero(x == high)) if high > low else 0
        below, at_low = (int(np.count_nonzero(some)) for some in (x < low, x == low))
        counts.append((below, at_low, at_high))
        inside.append(x[(x > low) & (x < high)])
    return _Part(len(x), mean, float(((x - mean) ** 2).sum()), counts, inside)


class _Column:
    def __init__(self, sample: Array, *, whole: bool) -> None:
        x = np.sort(sample[~np.isnan(sample)].astype(float))
        self.n, self.mean, self.squares = 0, 0.0, 0.0
        self.brackets: list[_Bracket] = []
        for level in LEVELS if len(x) else ():
            off = len(x) if whole else DEVIATIONS * (len(x) * level * (1 - level)) ** 0.5 + 1
            low, high = int(level * len(x) - off), int(level * len(x) + off)
            ends = x[low] if low >= 0 else -np.inf, x[high] if high < len(x) else np.inf
            self.brackets.append(_Bracket(level, *map(float, ends)))

    @property
    def ends(self) -> Ends:
        return [(one.low, one.high) for one in self.brackets]

    def add(self, part: _Part) -> None:
        if not part.n:
            return
        for bracket, counts, inside in zip(self.brackets, part.counts, part.inside, strict=True):
            bracket.add(counts, inside)
        n = self.n + part.n
        # Chan, Golub and LeVeque's update of a sum of squares about the mean
        gap = part.mean - self.mean
        self.squares += part.squares + gap * gap * self.n * part.n / n
        self.mean += gap * part.n / n
        self.n = n

    @property
    def found(self) -> bool:
        return not self.n or (bool(self.brackets) and all(b.holds(self.n) for b in self.brackets))

    @property
    def quartiles(self) -> list[float]:
        return [one.value(self.n) for one in self.brackets] if self.n else [np.nan] * len(LEVELS)

    @property
    def deviation(self) -> float:
        return float((self.squares / self.n) ** 0.5) if self.n else 0.0


class _Bracket:
    """Values between two ends, and how many lie below and at the ends."""

    def __init__(self, level: float, low: float, high: float) -> None:
        self.level, self.low, self.high = level, low, high
        self.below = self.at_low = self.at_high = 0
        self.inside: list[Array] = []

    def add(self, counts: tuple[int, int, int], inside: Array) -> None:
        self.below += counts[0]
        self.at_low += counts[1]
        self.at_high += counts[2]
        self.inside.append(inside)

    def holds(self, n: int) -> bool:
        last = self.below + self.at_low + sum(map(len, self.inside)) + self.at_high
        rank = int((n - 1) * self.level)
        return self.below <= rank and min(rank + 1, n - 1) < last

    def value(self, n: int) -> float:
        """Return the quantile among `n` values, interpolated as NumPy does it."""
        place = (n - 1) * self.level
        rank, share = int(place), place - int(place)
        inside = np.concatenate([*self.inside, np.empty(0)])
        first, second = (self._at(min(k, n - 1), inside) for k in (rank, rank + 1))
        if share >= 0.5:
            return second - (second - first) * (1 - share)
        return first + (second - first) * share

    def _at(self, rank: int, inside: Array) -> float:
        rank -= self.below
        if rank < self.at_low:
            return self.low
        rank -= self.at_low
        return float(np.partition(inside, rank)[rank]) if rank < len(inside) else self.high
