"""Values as JSON can hold them."""

import math
from typing import Any


def plain(value: Any) -> Any:
    """Return arrays and NumPy's numbers as JSON's own; what is not finite becomes None.

    >>> import numpy as np
    >>> plain(np.array([1.5, np.inf])), plain(np.int64(3))
    ([1.5, None], 3)
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
