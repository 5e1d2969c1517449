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
    "DPCPIRLS": "dpcp_irls",
    "DPCPLP": "dpcp_lp",
    "DPCPd": "dpcp_d",
    "FMS": "fms",
    "GGD": "ggd",
    "GMS": "gms",
    "LLD": "lld",
    "MDR": "mdr",
    "OutlierPursuit": "outlier_pursuit",
    "RANSAC": "ransac",
    "RANSACPlus": "ransac_plus",
    "REAPER": "reaper",
    "RSGM": "rsgm",
    "RecursiveDPCP": "recursive_dpcp",
    "STE": "ste",
    "SphericalPCA": "spherical_pca",
    "TME": "tme",
}
"""Every method: its class, and its module in `perpend.methods`, which has a function of the same
name. A line here makes a method public: as ``perpend.CLASS`` and ``perpend.function``, on the
command line, in the docs and in the common tests."""

_LABELS_ONLY = {
    "DoubleOverparameterization": "double_overparameterization",
    "PCP": "pcp",
    "RGraph": "rgraph",
}
"""The same for methods that label the rows of the fit and find no subspace: not on the command
line."""

_HOMES = {
    "BatchSolution": "perpend.batch",
    "OrthogonalDictionary": "perpend.sparse",
    "RobustStandardizer": "perpend.standardizer",
    "as_rows": "perpend.rows",
    "callbacks": "perpend",
    "compare": "perpend.comparison",
    "comparison": "perpend",
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
    "open_rows": "perpend.storage",
    "peel": "perpend.peeling",
    "plots": "perpend",
    "save": "perpend.persistence",
    "sparsest_vector": "perpend.sparse",
    "subspace_distance": "perpend.metrics",
    "subspace_error": "perpend.metrics",
    "theory": "perpend",
    **{name: f"perpend.methods.{module}" for name, module in (_METHODS | _LABELS_ONLY).items()},
    **{module: f"perpend.methods.{module}" for module in (_METHODS | _LABELS_ONLY).values()},
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604  names, all of them

if TYPE_CHECKING:  # for editors and type checkers; a method works without its line here
    from perpend import callbacks as callbacks
    from perpend import comparison as comparison
    from perpend import correspondences as correspondences
    from perpend import datasets as datasets
    from perpend import export as export
    from perpend import formats as formats
    from perpend import metrics as metrics
    from perpend import plots as plots
    from perpend import theory as theory
    from perpend.batch import BatchSolution as BatchSolution
    from perpend.batch import dpcp_batch as dpcp_batch
    from perpend.comparison import compare as compare
    from perpend.correspondences import fundamental_matrix as fundamental_matrix
    from perpend.correspondences import homography as homography
    from perpend.methods.coherence_pursuit import CoherencePursuit as CoherencePursuit
    from perpend.methods.coherence_pursuit import coherence_pursuit as coherence_pursuit
    from perpend.methods.double_overparameterization import (
        DoubleOverparameterization as DoubleOverparameterization,
    )
    from perpend.methods.double_overparameterization import (
        double_overparameterization as double_overparameterization,
    )
    from perpend.methods.dpcp import DPCP as DPCP
    from perpend.methods.dpcp import dpcp as dpcp
    from perpend.methods.dpcp_d import DPCPd as DPCPd
    from perpend.methods.dpcp_d import dpcp_d as dpcp_d
    from perpend.methods.dpcp_irls import DPCPIRLS as DPCPIRLS
    from perpend.methods.dpcp_irls import dpcp_irls as dpcp_irls
    from perpend.methods.dpcp_lp import DPCPLP as DPCPLP
    from perpend.methods.dpcp_lp import dpcp_lp as dpcp_lp
    from perpend.methods.fms import FMS as FMS
    from perpend.methods.fms import fms as fms
    from perpend.methods.ggd import GGD as GGD
    from perpend.methods.ggd import ggd as ggd
    from perpend.methods.gms import GMS as GMS
    from perpend.methods.gms import gms as gms
    from perpend.methods.lld import LLD as LLD
    from perpend.methods.lld import lld as lld
    from perpend.methods.mdr import MDR as MDR
    from perpend.methods.mdr import mdr as mdr
    from perpend.methods.outlier_pursuit import OutlierPursuit as OutlierPursuit
    from perpend.methods.outlier_pursuit import outlier_pursuit as outlier_pursuit
    from perpend.methods.pcp import PCP as PCP
    from perpend.methods.pcp import pcp as pcp
    from perpend.methods.ransac import RANSAC as RANSAC
    from perpend.methods.ransac import ransac as ransac
    from perpend.methods.ransac_plus import RANSACPlus as RANSACPlus
    from perpend.methods.ransac_plus import ransac_plus as ransac_plus
    from perpend.methods.reaper import REAPER as REAPER
    from perpend.methods.reaper import reaper as reaper
    from perpend.methods.recursive_dpcp import RecursiveDPCP as RecursiveDPCP
    from perpend.methods.recursive_dpcp import recursive_dpcp as recursive_dpcp
    from perpend.methods.rgraph import RGraph as RGraph
    from perpend.methods.rgraph import rgraph as rgraph
    from perpend.methods.rsgm import RSGM as RSGM
    from perpend.methods.rsgm import rsgm as rsgm
    from perpend.methods.spherical_pca import SphericalPCA as SphericalPCA
    from perpend.methods.spherical_pca import spherical_pca as spherical_pca
    from perpend.methods.ste import STE as STE
    from perpend.methods.ste import ste as ste
    from perpend.methods.tme import TME as TME
    from perpend.methods.tme import tme as tme
    from perpend.metrics import subspace_distance as subspace_distance
    from perpend.metrics import subspace_error as subspace_error
    from perpend.peeling import peel as peel
    from perpend.persistence import load as load
    from perpend.persistence import save as save
    from perpend.relations import equations as equations
    from perpend.rows import as_rows as as_rows
    from perpend.sparse import OrthogonalDictionary as OrthogonalDictionary
    from perpend.sparse import sparsest_vector as sparsest_vector
    from perpend.standardizer import RobustStandardizer as RobustStandardizer
    from perpend.storage import open_rows as open_rows


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'perpend' has no attribute {name!r}")
    home = _HOMES[name]
    if home == "perpend":
        return import_module(f"perpend.{name}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
