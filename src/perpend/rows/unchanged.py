r"""Rows that must be the same in every pass: what is remembered of a window, and compared.

Of each group of rows X_g two numbers are kept: :math:`\langle U, X_g \rangle`, with a fixed random
matrix U whose columns add up to zero, and the product of the first row with a random vector. Other
rows, or the same in another order, give another first number, as does NaN; what all rows have in
common, as a place far from the origin, hides nothing there. The second one shows whether that has
changed. Entries may differ by rounding errors, as a GPU's do from pass to pass.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from perpend._typing import Array
from perpend.exceptions import InputError

GROUP_ROWS = 64  # to two numbers; the smaller, the more they take
GROUP_ENTRIES = 2**16  # at most, as U has so many
DIFFERS = 1e-3  # of the largest such number in the window; one row of 64 that is replaced is 0.04
ROUNDING = 200.0  # times eps and the largest entry: what rounding errors may change, at the most
SEED = 6_074_001_000  # of U; rows that somebody drew with the same one would be U itself


class Seen(NamedTuple):
    """What was seen of a window when it was read first."""

    numbers: Array  # (2, n_groups)
    margin: Array  # (2, 1): smaller differences say nothing


class Unchanged:
    """Windows of rows, each of which must always be what it was when it was read first."""

    def __init__(self) -> None:
        self._seen: dict[int, Seen] = {}

    def require(self, window: int, rows: Array, place: Callable[[int], str]) -> None:
        """Say so if rows are not what they were; ``place(i)`` names row i of the window."""
        other = self.changed(window, rows)
        if other is not None:
            raise InputError(
                f"The {other.stop - other.start} rows from {place(other.start)} on are not those "
                "of an earlier pass. The same rows must come in the same order in every pass: do "
                "not shuffle them or draw them anew, and open them again if there are new ones."
            )

    def changed(self, window: int, rows: Array) -> slice | None:
        """Return the first group of rows that is not what it was, None if all are the same."""
        if not rows.size:
            return None
        numbers, then = numbers_of(rows), self._seen.get(window)
        if then is None:
            self._seen[window] = Seen(numbers, margin_of(numbers, rows))
            return None
        same = np.isclose(numbers, then.numbers, rtol=0, atol=then.margin, equal_nan=True)
        if same.all():
            return None
        first, k = int(np.argmin(same.all(axis=0))), group_rows(rows.shape[1])
        return slice(first * k, min((first + 1) * k, len(rows)))


def numbers_of(rows: Array) -> Array:
    """Return the numbers (2, n_groups) of rows (n, D); the last group may be smaller."""
    (n, D), dtype = rows.shape, np.result_type(rows, np.float32)
    k = group_rows(D)
    whole, rest = divmod(n, k)
    numbers = np.empty((2, whole + bool(rest)))
    with np.errstate(invalid="ignore", over="ignore"):  # not finite: the user hears of it elsewhere
        numbers[0, :whole] = rows[: whole * k].reshape(whole, k * D) @ _balanced(k, D, dtype)
        if rest:
            numbers[0, whole] = rows[whole * k :].reshape(rest * D) @ _balanced(rest, D, dtype)
        numbers[1] = rows[::k] @ _random(1, D)[0].astype(dtype)
    return numbers


def margin_of(numbers: Array, rows: Array) -> Array:
    """Return up to where numbers (2, n_groups) of the same rows may differ, (2, 1)."""
    largest = np.max(np.abs(numbers), axis=1, keepdims=True, where=np.isfinite(numbers), initial=0)
    some = np.abs(rows[:: group_rows(rows.shape[1])]).astype(float)
    entry = np.max(some, where=np.isfinite(some), initial=0)
    eps = np.finfo(np.result_type(rows, np.float32)).eps
    margin: Array = DIFFERS * largest + ROUNDING * eps * entry
    return margin


def group_rows(n_features: int) -> int:
    """Return the number of rows in a group."""
    return max(1, min(GROUP_ROWS, GROUP_ENTRIES // n_features))


@lru_cache(8)
def _balanced(n: int, n_features: int, dtype: np.dtype[Any]) -> Array:
    """Return the matrix U (n, n_features) as a vector; that of a single row is zero."""
    U = _random(n, n_features)
    return (U - U.mean(axis=0)).reshape(-1).astype(dtype)


def _random(n: int, n_features: int) -> Array:
    """Return a matrix of norm one without small entries."""
    rng = np.random.default_rng(SEED)
    size = (n, n_features)
    U = rng.uniform(0.5, 1.5, size) * rng.choice([-1.0, 1.0], size)
    return U / np.linalg.norm(U)
