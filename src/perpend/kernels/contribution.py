"""The three things that a kernel can say about a block of rows."""

from typing import NamedTuple

from perpend._typing import Array


class Contribution(NamedTuple):
    """What one block adds to a scan; parts that a kernel does not need stay None.

    With w the row weights of the source, a scan adds up, over all blocks and in a fixed order,

    - ``w @ total``, of shape (m,), and
    - ``left.T @ (w * right)``, of shape (p, q); `right` is the block itself where it is None,

    and keeps `kept` with the rows if it was asked to.
    """

    total: Array | None = None  # (b, m)
    left: Array | None = None  # (b, p)
    right: Array | None = None  # (b, q)
    kept: Array | None = None  # (b,) or (b, m)
