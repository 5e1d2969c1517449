"""The compiled twin of `l1_objective_and_gradient`, and the library that it is in."""

import ctypes
import os
import threading
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from perpend._typing import Array, Kernel
from perpend.kernels import l1_objective_and_gradient

LIBRARY = Path(__file__).with_name("_l1.so")
ABI = 1  # what `perpend_abi` in l1.c must return; a library left from another version is refused
VARIANTS = ("baseline", "avx2", "avx512")  # the processor families of the library, the least first
CACHE_LINE = 64  # bytes, as many as in the longest vector: what vectors are aligned to

GROUP_ENTRIES = 2**19
"""Approximate number of entries of X in a group, the unit that threads share: at least half a
millisecond of work, fifty times the cost of the call."""

GROUPS_LEAST = 4  # in smaller problems; or just one, if they are a quarter as large
GROUPS_MOST = 64  # more would only add calls
GROUP_UNIT = 48  # the rows of a group are a multiple of this, the unit of the blocks in l1.c


def twin(
    kernel: Kernel, X: Array, weight: Array | None, divisor: Array | None, params: tuple[Any, ...]
) -> "L1Sums | None":
    """Return the sums of `kernel` over ranges of the rows ``X / divisor``, or None without a twin.

    None also stands for a layout that the twin cannot read.
    """
    fits = has_twin(kernel) and L1Sums.fits(X, weight, divisor, *params)
    return L1Sums(X, weight, divisor, *params) if fits else None


def has_twin(kernel: Kernel) -> bool:
    """Whether there is a twin of this kernel, for arrays that it can read."""
    return kernel is l1_objective_and_gradient and available()


class L1Sums:
    """Sums of w |x.b| and w sign(x.b) x over ranges of rows, for all directions B (D, k) at once.

    `groups` are the ranges to call it with. They depend only on the shape of X, so sums that are
    added up in their order depend on nothing else. `variant` names one of `variants()`; the default
    is the fastest.
    """

    def __init__(
        self,
        X: Array,
        weight: Array | None,
        divisor: Array | None,
        B: Array,
        *,
        variant: str | None = None,
    ) -> None:
        (n, D), size = X.shape, X.itemsize
        k = B.shape[1]
        self.groups = _groups(n, D)
        self._shape = D, k
        self._X, self._weight, self._divisor = X, weight, divisor
        self._strides = X.strides[0] // size, X.strides[1] // size
        B = np.ascontiguousarray(B, dtype=X.dtype)
        variant = variant or _fastest(D, size)
        pack, self._sums = _functions(variant, X.dtype.char)
        self._scratch_bytes = _scratch_bytes(variant, X.dtype.char, D, k)
        # Whole vectors: up to a line of zeros beyond the last direction.
        self._packed, packed = _aligned(D * (k * size + CACHE_LINE))
        pack(D, k, _pointer(B), packed)
        self._addresses = _pointer(X), packed

    @staticmethod
    def fits(X: Array, weight: Array | None, divisor: Array | None, *params: Any) -> bool:
        """Whether the library can read these arrays where they lie."""
        across, along = X.strides
        return bool(
            X.dtype.char in "df"
            and X.dtype.isnative
            and X.size > 0
            and X.flags.aligned
            and across % X.itemsize == along % X.itemsize == 0
            and (weight is None or _is_plain(weight, X))
            and (divisor is None or _is_plain(divisor, X))
            and len(params) == 1
            and params[0].ndim == 2
            and params[0].shape[0] == X.shape[1]
            and params[0].shape[1] > 0
        )

    def __call__(self, rows: slice) -> tuple[Array, Array]:
        """Return total (k,) and product (k, D) of these rows, in float64."""
        D, k = self._shape
        total, product = np.empty(k), np.empty((k, D))
        X, packed = self._addresses
        self._sums(
            rows.stop - rows.start,
            len(self._X) - rows.stop,
            D,
            k,
            X + rows.start * self._X.strides[0],
            *self._strides,
            _address(self._weight, rows.start),
            _address(self._divisor, rows.start),
            packed,
            _pointer(total),
            _pointer(product),
            _scratch(self._scratch_bytes),
        )
        return total, product


@lru_cache(maxsize=64)
def _groups(n: int, D: int) -> tuple[slice, ...]:
    """Cut n rows into equal ranges, in a number that a few threads share evenly."""
    n_groups = 1
    if n * D > GROUP_ENTRIES // 4:
        wanted = GROUPS_LEAST * -(-n * D // (GROUPS_LEAST * GROUP_ENTRIES))
        # Groups of few rows would spend their time on clearing and adding (k, D) sums.
        n_groups = max(1, min(wanted, GROUPS_MOST, n // (4 * GROUP_UNIT)))
    size = GROUP_UNIT * -(-n // (n_groups * GROUP_UNIT))
    return tuple(slice(start, min(start + size, n)) for start in range(0, n, size))


def _fastest(D: int, itemsize: int) -> str:
    """Return the variant to use; rows shorter than a long vector are served by a shorter one."""
    able = _runnable()
    if able[-1] == "avx512" and D * itemsize < CACHE_LINE:
        return "avx2"
    return able[-1]


def _is_plain(values: Array, X: Array) -> bool:
    """Whether there is one value for each row, of the same type, side by side."""
    fits = values.dtype == X.dtype and values.shape == X.shape[:1]
    return fits and bool(values.flags.c_contiguous and values.flags.aligned)


def _pointer(values: Array) -> int:
    """Return where an array begins."""
    if values.flags.writeable and values.flags.c_contiguous:  # a tenth of the other way's time
        return ctypes.addressof(ctypes.c_char.from_buffer(values))
    address: int = values.__array_interface__["data"][0]
    return address


def _address(values: Array | None, start: int) -> int | None:
    return None if values is None else _pointer(values) + start * values.itemsize


def _aligned(n_bytes: int) -> tuple[Array, int]:
    """Return room for so many bytes from a cache line on, and the address of that line."""
    room = np.empty(n_bytes + CACHE_LINE, np.uint8)
    return room, -(-_pointer(room) // CACHE_LINE) * CACHE_LINE


_own = threading.local()


def _scratch(n_bytes: int) -> int:
    """Return where this thread's working memory is; it is kept, so its pages need no clearing."""
    if getattr(_own, "scratch", None) is None or _own.scratch.size < n_bytes + CACHE_LINE:
        _own.scratch, _own.address = _aligned(n_bytes)
    address: int = _own.address
    return address


# -- the library -----------------------------------------------------------------------------------


def available() -> bool:
    """Whether compiled twins are used: the library is there and not turned off."""
    return os.environ.get("PERPEND_COMPILED") != "0" and _load() is not None


def variants() -> tuple[str, ...]:
    """Return the variants that this processor can run, the fastest last.

    The tuple is empty where compiled twins are not available.
    """
    return _runnable() if available() else ()


@cache
def _functions(variant: str, dtype_char: str) -> list[Any]:
    """Return pack and sums of l1.c for a variant and a dtype's character, "d" or "f"."""
    size, pointer = ctypes.c_ssize_t, ctypes.c_void_p
    signatures = {
        "pack_": (None, [size] * 2 + [pointer] * 2),  # D, k, B -> packed
        # rows, rows after them, D, k, X and its strides, weight, divisor, packed B
        # -> total, product; scratch
        "": (None, [size] * 4 + [pointer] + [size] * 2 + [pointer] * 6),
    }
    return [_function(f"{name}{variant}", dtype_char, *how) for name, how in signatures.items()]


@lru_cache(maxsize=64)
def _scratch_bytes(variant: str, dtype_char: str, D: int, k: int) -> int:
    """Return the bytes that the sums of l1.c need for themselves."""
    how = ctypes.c_size_t, [ctypes.c_ssize_t] * 2
    n_bytes: int = _function(f"scratch_{variant}", dtype_char, *how)(D, k)
    return n_bytes


def _function(name: str, dtype_char: str, result: Any, arguments: list[Any]) -> Any:
    """Return a function of l1.c, which Python then calls with these types."""
    function = getattr(_load(), f"perpend_l1_{name}_{'f64' if dtype_char == 'd' else 'f32'}")
    function.restype, function.argtypes = result, arguments
    return function


@cache
def _runnable() -> tuple[str, ...]:
    return VARIANTS[: _load().perpend_level() + 1]


@cache
def _load() -> Any:
    """Return the library, or None if it is missing, broken or of another version."""
    try:
        library = ctypes.CDLL(str(LIBRARY))
        return library if library.perpend_abi() == ABI else None
    except (OSError, AttributeError):
        return None
