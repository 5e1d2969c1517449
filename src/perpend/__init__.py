"""Robust subspace recovery: the subspace, its codimension and the outliers, and how sure it is.

>>> from perpend import DPCP
>>> from perpend.datasets import make_subspace
>>> X = make_subspace(random_state=0).X
>>> DPCP(random_state=0).fit(X).codimension_
5

Public names are imported when they are first used, so that ``import perpend`` is instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "BatchSolution": "perpend.batch",
    "DPCP": "perpend.methods",
    "DPCPIRLS": "perpend.methods",
    "RSGM": "perpend.methods",
    "RecursiveDPCP": "perpend.methods",
    "as_rows": "perpend.rows",
    "datasets": "perpend",
    "dpcp": "perpend.methods",
    "dpcp_batch": "perpend.batch",
    "dpcp_irls": "perpend.methods",
    "formats": "perpend",
    "load": "perpend.persistence",
    "metrics": "perpend",
    "peel": "perpend.peeling",
    "recursive_dpcp": "perpend.methods",
    "rsgm": "perpend.methods",
    "subspace_distance": "perpend.metrics",
    "subspace_error": "perpend.metrics",
    "theory": "perpend",
}

__all__ = [
    "DPCP",
    "DPCPIRLS",
    "RSGM",
    "BatchSolution",
    "RecursiveDPCP",
    "__version__",
    "as_rows",
    "datasets",
    "dpcp",
    "dpcp_batch",
    "dpcp_irls",
    "formats",
    "load",
    "metrics",
    "peel",
    "recursive_dpcp",
    "rsgm",
    "subspace_distance",
    "subspace_error",
    "theory",
]

if TYPE_CHECKING:
    from perpend import datasets, formats, metrics, theory
    from perpend.batch import BatchSolution, dpcp_batch
    from perpend.methods.dpcp import DPCP, dpcp
    from perpend.methods.dpcp_irls import DPCPIRLS, dpcp_irls
    from perpend.methods.recursive_dpcp import RecursiveDPCP, recursive_dpcp
    from perpend.methods.rsgm import RSGM, rsgm
    from perpend.metrics import subspace_distance, subspace_error
    from perpend.peeling import peel
    from perpend.persistence import load
    from perpend.rows import as_rows


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'perpend' has no attribute {name!r}")
    home = _HOMES[name]
    if home == "perpend":
        return import_module(f"perpend.{name}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
