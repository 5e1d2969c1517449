"""The compiled library: where it is, whether it may be used, and what this processor can run."""

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

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
    return VARIANTS[: _load().perpend_level() + 1] if available() else ()


@cache
def function(name: str, variant: str, dtype_name: str) -> Any:
    """Return one of the library's functions with its types, e.g. ``perpend_l1_avx2_f64``."""
    size, pointer = ctypes.c_ssize_t, ctypes.c_void_p
    types = {
        # D, k -> bytes
        "perpend_l1_scratch": (ctypes.c_size_t, [size, size]),
        # D, k, B -> packed
        "perpend_l1_pack": (None, [size, size, pointer, pointer]),
        # rows, D, k, X and its strides, weight, divisor, packed B -> total, product; scratch
        "perpend_l1": (None, [size] * 3 + [pointer] + [size] * 2 + [pointer] * 6),
    }
    found = getattr(_load(), f"{name}_{variant}_{'f64' if dtype_name == 'float64' else 'f32'}")
    found.restype, found.argtypes = types[name]
    return found


@cache
def _load() -> Any:
    """Return the library, or None if it is missing, broken or of another version."""
    try:
        library = ctypes.CDLL(str(LIBRARY))
        return library if library.perpend_abi() == ABI else None
    except (OSError, AttributeError):
        return None
