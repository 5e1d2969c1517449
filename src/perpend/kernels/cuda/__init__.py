r"""Fused CUDA kernels for the hot loop: objective and gradient in one pass over the rows.

.. math:: f_j = \sum_i w_i |x_i \cdot b_j|, \qquad G = \mathrm{sign}(X B)^T (w X)

`prepare` converts the rows once; what it returns evaluates any B. Nothing here imports torch or the
CUDA bindings before `prepare` is called, and `prepare` returns None if no kernel fits: the caller
then uses plain products.
"""

from perpend.kernels.cuda.entry import Precision, prepare

__all__ = ["Precision", "prepare"]
