"""After how many values of a spectrum the dimension ends, for methods that choose it by that."""

import numpy as np

from perpend._typing import Array
from perpend.structure import constants as k


def largest_fall(values: Array, *, then_zero: bool, luck: float = 1.0) -> int:
    """Return after how many of the values (R,), largest first and positive, they fall most.

    `then_zero`: these are all that rows have which span less than the space. The next value would
    be zero, and the fall after the last one is the largest of all: all R count. But that is true of
    any exact relation between columns, so a fall inside comes first if no cloud has one like it.
    `luck` is how much larger than those of a cloud's axes falls may be, as extremes of many.
    """
    falls = values[:-1] / values[1:]
    if len(falls) == 0 or (then_zero and np.max(falls) < luck * k.GAP**2):  # GAP is of lengths
        return len(values)
    return int(np.argmax(falls)) + 1
