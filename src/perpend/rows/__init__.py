"""Where the rows are, and how they are read.

A solver lets a `RowSource` run a kernel over all rows and gets back sums. It does not know whether
the rows are in memory or elsewhere, weighted, masked or normalised.
"""

from perpend.rows.array import ArrayRows as ArrayRows
from perpend.rows.preparation import as_rows as as_rows
from perpend.rows.preparation import check_source as check_source
from perpend.rows.source import Kept as Kept
from perpend.rows.source import RowSource as RowSource
from perpend.rows.source import Scan as Scan
from perpend.rows.span import Distinct as Distinct
from perpend.rows.span import RowSpan as RowSpan
from perpend.rows.span import distinct_rows as distinct_rows
from perpend.rows.span import in_their_span as in_their_span
from perpend.rows.span import rank_tolerance as rank_tolerance
from perpend.rows.span import row_span as row_span
from perpend.rows.span import scan_distances as scan_distances
from perpend.rows.span import scan_grouped_distances as scan_grouped_distances
from perpend.rows.span import scan_weighted_gram as scan_weighted_gram
