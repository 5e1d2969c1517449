"""The few types that the whole package shares.

Arrays may come from NumPy, torch or array-api-strict, and no static type covers them all.
This is the only module in which ``Any`` stands for an array.
"""

import sys
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


def namespace(array: Array) -> Namespace:
    """Return the array library that `array` belongs to.

    >>> import numpy as np
    >>> namespace(np.ones(2)) is np
    True
    """
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    # torch's own functions differ from the standard in names and defaults; this package is thin.
    from array_api_compat import array_namespace

    return array_namespace(array)


def library(array: Array) -> Namespace:
    """Return numpy or torch, whichever the array belongs to, with functions of its own names."""
    return sys.modules[type(array).__module__.partition(".")[0]]
