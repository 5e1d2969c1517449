"""All methods on the same rows, side by side: `compare`, and the `Comparison` that it returns.

Methods come from the registry, and what they need from their `capabilities`. Those that must be
given the dimension get the one that was given, or else the estimate of `DPCP`. Methods that find no
subspace take part by their labels and scores, and PCA by an adapter. If a method fails, the others
go on.
"""

from perpend.comparison.form import compare
from perpend.comparison.pca import PCABaseline
from perpend.comparison.result import ComparedMethod, Comparison

__all__ = ["ComparedMethod", "Comparison", "PCABaseline", "compare"]
