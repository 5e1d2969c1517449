"""Compiled twins of kernels: the same sums, in one pass that keeps every block in registers.

A twin is found by the kernel function itself, so a row source needs to know none of them. Twins
need a small C library that is built with the package where there is a C compiler; without it, or
with ``PERPEND_COMPILED=0`` in the environment, everything runs on NumPy.
"""

from typing import Any

from perpend._typing import Array, Kernel
from perpend.kernels.compiled.l1 import L1Sums
from perpend.kernels.compiled.library import available, variants
from perpend.kernels.l1 import l1_objective_and_gradient

__all__ = ["L1Sums", "available", "twin", "variants"]

_TWINS = {l1_objective_and_gradient: L1Sums}


def twin(
    kernel: Kernel, X: Array, weight: Array | None, divisor: Array | None, params: tuple[Any, ...]
) -> L1Sums | None:
    """Return the sums of `kernel` over ranges of the rows ``X / divisor``, or None without a twin.

    None also stands for a layout that the twin cannot read.
    """
    sums = _TWINS.get(kernel)
    if sums is None or not available() or not sums.fits(X, weight, divisor, *params):
        return None
    return sums(X, weight, divisor, *params)
