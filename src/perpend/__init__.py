"""Robust subspace recovery: the subspace, its codimension, the outliers, and a confidence.

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

_METHODS = {
    "DPCP": "dpcp",
    "CoherencePursuit": "coherence_pursuit",
    "LLD": "lld",
    "MDR": "mdr",
    "OutlierPursuit": "outlier_pursuit",
    "DPCPIRLS": "dpcp_irls",
    "DPCPLP": "dpcp_lp",
    "DPCPd": "dpcp_d",
    "RANSAC": "ransac",
    "RANSACPlus": "ransac_plus",
    "RSGM": "rsgm",
    "RecursiveDPCP": "recursive_dpcp",
}
"""Every method: its class, and its module in `perpend.methods`, which has a function of the same
name. A line here makes a method public: as ``perpend.CLASS`` and ``perpend.function``, on the
command line, in the docs and in the common tests."""

_LABELS_ONLY = {"PCP": "pcp", "RGraph": "rgraph"}
"""The same for methods that label the rows of the fit and find no subspace: not on the command
line."""

_HOMES = {
    "BatchSolution": "perpend.batch",
    "RobustStandardizer": "perpend.standardizer",
    "as_rows": "perpend.rows",
    "callbacks": "perpend",
    "correspondences": "perpend",
    "datasets": "perpend",
    "dpcp_batch": "perpend.batch",
    "equations": "perpend.relations",
    "export": "perpend",
    "formats": "perpend",
    "fundamental_matrix": "perpend.correspondences",
    "homography": "perpend.correspondences",
    "load": "perpend.persistence",
    "metrics": "perpend",
    "peel": "perpend.peeling",
    "plots": "perpend",
    "subspace_distance": "perpend.metrics",
    "subspace_error": "perpend.metrics",
    "theory": "perpend",
    **dict.fromkeys([*_METHODS, *_METHODS.values()], "perpend.methods"),
    **dict.fromkeys([*_LABELS_ONLY, *_LABELS_ONLY.values()], "perpend.methods"),
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604  names, all of them

if TYPE_CHECKING:  # for editors and type checkers; a method works without its line here
    from perpend import callbacks as callbacks
    from perpend import correspondences as correspondences
    from perpend import datasets as datasets
    from perpend import export as export
    from perpend import formats as formats
    from perpend import metrics as metrics
    from perpend import plots as plots
    from perpend import theory as theory
    from perpend.batch import BatchSolution as BatchSolution
    from perpend.batch import dpcp_batch as dpcp_batch
    from perpend.correspondences import fundamental_matrix as fundamental_matrix
    from perpend.correspondences import homography as homography
    from perpend.methods.dpcp import DPCP as DPCP
    from perpend.methods.dpcp import dpcp as dpcp
    from perpend.methods.dpcp_irls import DPCPIRLS as DPCPIRLS
    from perpend.methods.dpcp_irls import dpcp_irls as dpcp_irls
    from perpend.methods.recursive_dpcp import RecursiveDPCP as RecursiveDPCP
    from perpend.methods.recursive_dpcp import recursive_dpcp as recursive_dpcp
    from perpend.methods.rsgm import RSGM as RSGM
    from perpend.methods.rsgm import rsgm as rsgm
    from perpend.metrics import subspace_distance as subspace_distance
    from perpend.metrics import subspace_error as subspace_error
    from perpend.peeling import peel as peel
    from perpend.persistence import load as load
    from perpend.relations import equations as equations
    from perpend.rows import as_rows as as_rows
    from perpend.standardizer import RobustStandardizer as RobustStandardizer


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'perpend' has no attribute {name!r}")
    home = _HOMES[name]
    if home == "perpend":
        return import_module(f"perpend.{name}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
