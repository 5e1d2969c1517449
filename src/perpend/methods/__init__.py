"""Who published it: one file for each method, a function and a thin estimator."""

from perpend.methods.dpcp import DPCP, dpcp

__all__ = ["DPCP", "dpcp"]
