"""Where the rows are, and how they are read.

A solver asks a `RowSource` to run a kernel over all rows and gets back sums; it never learns
whether the rows are in memory or elsewhere, weighted, masked or normalised.
"""

from perpend.rows.array import ArrayRows
from perpend.rows.preparation import as_rows
from perpend.rows.source import Kept, RowSource, Scan

__all__ = ["ArrayRows", "Kept", "RowSource", "Scan", "as_rows"]
