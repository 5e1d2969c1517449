"""The suites of benchmarks/decisions.py, by name, in the order of the page."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # for `studies`, which is not installed

from _suites.clear import CLEAR
from _suites.clouds import CLOUD, GAP
from _suites.scans import SCANS
from _suites.slab import SLAB
from _suites.stretched import STRETCHED
from _suites.suite import Suite
from _suites.third import THIRD

SUITES: dict[str, Suite] = {
    "scans": SCANS,
    "slab": SLAB,
    "cloud": CLOUD,
    "gap": GAP,
    "stretched": STRETCHED,
    "third": THIRD,
}
TIMED: dict[str, Suite] = {"scans": SCANS, "third": THIRD, "clear": CLEAR}
"""What can be timed against another version."""
