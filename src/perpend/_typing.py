"""The few types that the whole package shares.

Arrays may come from NumPy, torch or array-api-strict, and no static type covers them all.
This is the only module in which ``Any`` stands for an array.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

Array: TypeAlias = Any
"""An array of any library that follows the array API standard."""

Auto: TypeAlias = Literal["auto"]
"""Where a number is left to us."""

Namespace: TypeAlias = Any
"""The array library itself: what ``array.__array_namespace__()`` returns."""

Kernel: TypeAlias = Callable[..., Any]
"""What one block of rows contributes: ``kernel(block, *params, *using) -> Contribution``."""

RandomState: TypeAlias = Any
"""None, an int, a ``numpy.random.Generator`` or a ``numpy.random.RandomState``."""
