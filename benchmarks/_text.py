"""How the page is filled in: as in `studies`, which stands beside this folder."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # a benchmark is run as a script

from studies._text import anchor, filled, number, percent, span, table

__all__ = ["anchor", "filled", "number", "percent", "span", "table"]
