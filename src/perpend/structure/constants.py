"""Every limit that decides something, with its reason. Lengths and ratios have no unit.

How long to search, and in how many rows, is in `perpend.structure.effort`.
"""

# The contrast of two balls: rows within r against rows within 2 r.
WIDTH = 1.5  # r = s (sqrt(c) + WIDTH) holds 95 to 98 % of Gaussian noise of deviation s, for any c
OUTER = 3  # octaves to a second, wider outer ball: exact rows say more against it
LUCK = 10.0  # nats that accidents reach, even without free parameters,
LUCK_PER_PARAMETER = 0.75  # and so much more for each, beside log(n / D) / 2 (record 4's table)
PART = 1 / 3  # of the rows within two r must be more than a flat density puts there, for a plateau
EXACT = 4.0  # times the floor: noise that is nothing but rounding errors

# Which codimension: evidence times persistence.
POWER = 0.5  # of the evidence: a long plateau with less is worth more (homographies, notes)
LONG = 6.0  # plateaus longer than a factor e^6 are not more convincing
LAYER = 1.0  # length (a factor e) from which on a finer plateau that is as good is preferred
LENGTH = 0.26  # of a plateau, beyond the longest rival's, that makes a codimension clear
SHOULDER = 0.3  # of the best weight: plateaus with less are the shoulders of others
AS_GOOD = 0.75  # of the contrast, weight or rows: what has so much is as good
FEWER = 0.8  # of the rows, or of a radius: what has less is another group, or a thinner one
SAME_SUBSPACE = 2.5  # times the noise: members are so near to the same subspace of another start
OTHER = 3.0  # times as far: then it is another one
CLEAR_SCORE = 0.2  # of the directions' rank: a gap of 1.6 with the full rise of the objective

# Layers and members: where the density of the distances stops falling.
KINK = 14.0  # twice the log-likelihood; single bells reach 11 in one of a hundred cases, 15 never
CLEAR_LAYER = 28.0  # the same, twice as much: layers that gain less have noise of any size
UNLIKE = 0.05  # the same for each row: a shape between those of Gauss, Laplace, Student has .04
ROWS_IN_BIN = 12  # rows in a bin of the density
LEAST_SHARE = 0.05  # of the rows: smaller layers, as single rings of a scanner, are not taken
REACH = 2.0  # the weights of a path end at s (sqrt(k) + REACH): within 2 deviations of the noise
NEAR_REACH = 1.75  # the same of the last steps: 84 % efficient with one normal, and less to turn it
NOISE_QUANTILE = 0.83  # of the members: noise is measured by the distance that so many are within
LOST = 1.17  # times what is seen: tails in a slab, half-way from Student's scale to its deviation
AS_THIN = 1.2  # times the noise, or a length: what is so near belongs together

# Checks.
SURE = 0.95  # from this confidence on, an estimate is sure
DOUBTFUL = 0.9  # with a doubt, the confidence is at most this
TWO_PARTS = 0.8  # second eigenvalue of the walk: rows may be of two kinds (record 16, item 7)
GAP = 5.0  # between axes, where all rows are members: outliers five times as near make smaller ones
ALL_ROWS = 0.98  # share of members from which on there is no other group
NO_SUBSPACE = 0.5  # of the squared norm: so much noise is none, but the whole cloud
NOISE = 0.2  # of the inliers' squared norm: more noise than that is hardly a subspace
OVERLAP = 0.11  # of the labels: more would be wrong in any case,
OVERLAP_ROUGH = 0.25  # or so many, where the estimate is rough
LONG_ROWS = 8.0  # times the typical norm: a few such rows decide alone
ALL_SHORT = 0.7  # of the outliers that are short inliers: the others are no group
AS_NEAR = 0.95  # of the inliers are nearer: what is so near, in the units of the data, is one

# The law of outliers without preferred direction, and affine subspaces.
MISFIT = 2.0  # of the outliers' distances to that law: one in a thousand exceeds it by chance
LIKE_THE_LAW = 0.05  # Kolmogorov-Smirnov distance up to which many outliers follow it well enough
BETTER = 3.0  # standard deviations by which another threshold must be better than the model's
SAME_ANGLE = 0.1  # sine of the largest angle up to which two estimates are the same,
SAME_NOISE = 1.5  # and ratio up to which two estimates of the noise are of the same rows
BY_CHANCE = 1e-6  # the chance by which a subspace through the origin would seem to miss it
REMOTE = 3.0  # times the inliers' radius: from there the origin sees them all in one direction
