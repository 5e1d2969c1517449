"""The compiled library: where it is, whether it may be used, and what this processor can run."""

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ABI = 1
"""What `perpend_abi` in l1.c must answer; a library left over from another version is refused."""

VARIANTS = ("baseline", "avx2", "avx512")
"""The processor families that the library is compiled for, the least first."""

LIBRARY = Path(__file__).with_name("_l1.so")


def available() -> bool:
    """Whether compiled twins are used: the library is there and not turned off."""
    return os.environ.get("PERPEND_COMPILED") != "0" and _load() is not None


def variants() -> tuple[str, ...]:
    """Return the variants that this processor can run, the fastest last.

    The tuple is empty where compiled twins are not available.
    """
    return _runnable() if available() else ()


class L1Functions(NamedTuple):
    """The functions of l1.c for one variant and one type of numbers."""

    scratch: Any  # D, k -> bytes
    pack: Any  # D, k, B -> packed
    # rows, rows after them, D, k, X and its strides, weight, divisor, packed B
    # -> total, product; scratch
    sums: Any


@cache
def l1_functions(variant: str, dtype_char: str) -> L1Functions:
    """Return the functions for a variant and a dtype's character, "d" or "f"."""
    size, pointer = ctypes.c_ssize_t, ctypes.c_void_p
    end = f"{variant}_{'f64' if dtype_char == 'd' else 'f32'}"
    scratch = getattr(_load(), f"perpend_l1_scratch_{end}")
    scratch.restype, scratch.argtypes = ctypes.c_size_t, [size, size]
    pack = getattr(_load(), f"perpend_l1_pack_{end}")
    pack.restype, pack.argtypes = None, [size, size, pointer, pointer]
    sums = getattr(_load(), f"perpend_l1_{end}")
    sums.restype, sums.argtypes = None, [size] * 4 + [pointer] + [size] * 2 + [pointer] * 6
    return L1Functions(scratch, pack, sums)


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
