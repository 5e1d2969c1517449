"""Which subspace, at which scale, with how many normals: proposals in, scored structures out.

No law of the outliers is needed. Where nothing concentrates near a subspace, the density of the
rows is smooth there, and the number of rows within a distance r grows like r^c. A structure is a
range of scales over which it does not.
"""

from perpend.rows.plan import sample_sizes as sample_sizes
from perpend.structure.affine import find_affine as find_affine
from perpend.structure.affine import solve_lifted as solve_lifted
from perpend.structure.cloud import Axes as Axes
from perpend.structure.cloud import Cloud as Cloud
from perpend.structure.cloud import sample_size as sample_size
from perpend.structure.cloud import size_for_low_dimension as size_for_low_dimension
from perpend.structure.constants import SURE as SURE
from perpend.structure.decide import Decision as Decision
from perpend.structure.descents import Descent as Descent
from perpend.structure.estimate import Estimate as Estimate
from perpend.structure.estimate import solution_of as solution_of
from perpend.structure.flats import AffineFit as AffineFit
from perpend.structure.ground import largest_fall as largest_fall
from perpend.structure.linear import find_proposed as find_proposed
from perpend.structure.linear import find_subspace as find_subspace
from perpend.structure.linear import solve_fixed as solve_fixed
from perpend.structure.linear import solve_free as solve_free
from perpend.structure.low_rank import low_rank_and_rows as low_rank_and_rows
from perpend.structure.low_rank import row_weight as row_weight
from perpend.structure.profile import Profile as Profile
from perpend.structure.samples import Subsample as Subsample
from perpend.structure.samples import by_sample as by_sample
from perpend.structure.search import find_structure as find_structure
