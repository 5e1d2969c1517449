"""Affine subspaces: a location besides the directions.

The rows are lifted to homogeneous coordinates ((x - m) / s, 1), where an affine subspace of
dimension d is a linear one of dimension d + 1 with as many normals. Any method finds it there. Its
answer is brought back to the space of the data and polished there, where distances are Euclidean.
"""

from perpend.affine.by_scales import find_by_scales
from perpend.affine.fit import AffineFit, fit_affine
from perpend.affine.origin import OriginTest

__all__ = ["AffineFit", "OriginTest", "find_by_scales", "fit_affine"]
