"""Where the rows are, and how they are read.

A solver lets a `RowSource` run a kernel over all rows and gets back sums. It does not know whether
the rows are in memory or elsewhere, weighted, masked or normalised.
"""

from perpend.rows.array import ArrayRows
from perpend.rows.preparation import as_rows
from perpend.rows.source import Kept, RowSource, Scan
from perpend.rows.span import (
    Distinct,
    RowSpan,
    distinct_rows,
    in_their_span,
    rank_tolerance,
    row_span,
    scan_distances,
    scan_grouped_distances,
    scan_weighted_gram,
)

__all__ = [
    "ArrayRows",
    "Distinct",
    "Kept",
    "RowSource",
    "RowSpan",
    "Scan",
    "as_rows",
    "distinct_rows",
    "in_their_span",
    "rank_tolerance",
    "row_span",
    "scan_distances",
    "scan_grouped_distances",
    "scan_weighted_gram",
]
