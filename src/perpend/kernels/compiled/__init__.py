"""Compiled twins of kernels: the same sums, in one pass that keeps every block in registers.

A twin is looked up by the kernel function, so a row source need not know them. Twins need a small C
library that is built with the package if there is a C compiler. Without it, or with
``PERPEND_COMPILED=0`` in the environment, everything runs on NumPy.
"""

from perpend.kernels.compiled.l1 import L1Sums, available, has_twin, twin, variants

__all__ = ["L1Sums", "available", "has_twin", "twin", "variants"]
