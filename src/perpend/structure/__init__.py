"""Which subspace, at which scale, with how many normals: proposals in, scored structures out.

No law of the outliers is needed. Where nothing concentrates near a subspace, the density of the
rows is smooth there, and the number of rows within a distance r grows like r^c. A structure is a
range of scales over which it does not.
"""

from perpend.structure.cloud import Axes, Cloud, sample_size
from perpend.structure.layers import Layer, find_layers
from perpend.structure.search import Decision, Structure, find_structure

__all__ = [
    "Axes",
    "Cloud",
    "Decision",
    "Layer",
    "Structure",
    "find_layers",
    "find_structure",
    "sample_size",
]
