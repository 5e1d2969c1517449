"""Who published it: one file for each method, a function and a thin estimator."""

from perpend.methods.dpcp import DPCP, dpcp
from perpend.methods.dpcp_irls import DPCPIRLS, dpcp_irls
from perpend.methods.recursive_dpcp import RecursiveDPCP, recursive_dpcp
from perpend.methods.rsgm import RSGM, rsgm

__all__ = [
    "DPCP",
    "DPCPIRLS",
    "RSGM",
    "RecursiveDPCP",
    "dpcp",
    "dpcp_irls",
    "recursive_dpcp",
    "rsgm",
]
