"""Which subspace, at which scale, with how many normals: proposals in, scored structures out.

No law of the outliers is needed. Where nothing concentrates near a subspace, the density of the
rows is smooth there, and the number of rows within a distance r grows like r^c. A structure is a
range of scales over which it does not.
"""

from perpend.rows.plan import sample_sizes
from perpend.structure.affine import find_affine, solve_lifted
from perpend.structure.cloud import Axes, Cloud, sample_size, size_for_low_dimension
from perpend.structure.constants import SURE
from perpend.structure.decide import Decision
from perpend.structure.descents import Descent
from perpend.structure.estimate import Estimate, solution_of
from perpend.structure.falls import largest_fall
from perpend.structure.flats import AffineFit
from perpend.structure.linear import find_proposed, find_subspace, solve_fixed, solve_free
from perpend.structure.low_rank import low_rank_and_rows, row_weight
from perpend.structure.profile import Profile
from perpend.structure.samples import Subsample, by_sample
from perpend.structure.search import find_structure

__all__ = [
    "SURE",
    "AffineFit",
    "Axes",
    "Cloud",
    "Decision",
    "Descent",
    "Estimate",
    "Profile",
    "Subsample",
    "by_sample",
    "find_affine",
    "find_proposed",
    "find_structure",
    "find_subspace",
    "largest_fall",
    "low_rank_and_rows",
    "row_weight",
    "sample_size",
    "sample_sizes",
    "size_for_low_dimension",
    "solution_of",
    "solve_fixed",
    "solve_free",
    "solve_lifted",
]
