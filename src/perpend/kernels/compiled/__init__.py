"""Compiled twins of kernels: the same sums, in one pass that keeps every block in registers.

A twin is found by the kernel function itself, so a row source needs to know none of them. Twins
need a small C library that is built with the package where there is a C compiler; without it, or
with ``PERPEND_COMPILED=0`` in the environment, everything runs on NumPy.
"""

from perpend.kernels.compiled.l1 import L1Sums, available, twin, variants

__all__ = ["L1Sums", "available", "twin", "variants"]
