"""Data to try things on: seeded generators with a known true subspace.

>>> from perpend.datasets import make_subspace
>>> data = make_subspace(60, 40, n_features=10, codimension=2, random_state=0)
>>> data.X.shape, data.normals.shape
((100, 10), (2, 10))
"""

from perpend.datasets._subspace import SubspaceData, make_subspace

__all__ = ["SubspaceData", "make_subspace"]
