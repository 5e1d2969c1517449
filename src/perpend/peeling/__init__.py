"""Several subspaces: one after the other, each with codimension, confidence and members."""

from perpend.peeling.form import Peeled, Subspace, peel

__all__ = ["Peeled", "Subspace", "peel"]
