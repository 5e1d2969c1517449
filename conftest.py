"""For all tests and doctests: figures are closed, and modules that need what is not there left out.

Displays make their figures with pyplot, which keeps them open and warns of too many.
"""

import os
import sys
from importlib.util import find_spec

import pytest

os.environ.setdefault("MPLBACKEND", "agg")  # no windows, neither here nor in processes of the tests

MODULES = {
    "pyod": ("pyod.py",),
    "torch": ("kernels/cuda/*.py", "rows/torch.py"),
    "triton": ("kernels/cuda/batched.py",),  # comes with torch for GPUs
    "cuda": ("kernels/cuda/compiler.py", "kernels/cuda/prepared.py"),  # likewise
}

collect_ignore_glob = [
    f"src/perpend/{module}"
    for package, modules in MODULES.items()
    if not find_spec(package)
    for module in modules
]


@pytest.fixture(autouse=True)
def _closed_figures():
    """Close what pyplot has open after a test, where it was used at all."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
