"""Every limit that decides something, with its reason. Lengths and ratios have no unit."""

# The contrast of two balls: rows within r against rows within KAPPA r.
OCTAVE = 8  # scales in a factor of two
WIDTH = 1.5  # r = s (sqrt(c) + WIDTH) holds 95 to 98 % of Gaussian noise of deviation s, for any c
FAR = 3  # octaves to a second, wider outer ball: exact rows say more against it
LUCK = 10.0  # nats that accidents reach, even without free parameters,
LUCK_PER_PARAMETER = 0.75  # and so much more for each, beside log(n / D) / 2 (record 4's table)
PART = 1 / 3  # of the rows within two r must be more than a flat density puts there, for a plateau

# A path: weighted PCA along shrinking scales.
SHRINK = 0.9  # of the scale, step by step; with 0.7 a road inside a street is lost
SLOW = 0.985  # the same where nothing was found: near the spectral limit
REACH = 2.0  # weights end at s (sqrt(k) + REACH)
GIVE_UP = 16.0  # times below the last significant scale nothing more will come
LOOK = 3  # steps between two tables; a table costs about as much as two steps
WIDE = 64  # columns from which on tables and spectra are saved where little can come of them

# Which codimension: evidence times persistence.
POWER = 0.5  # of the evidence: a long plateau with less is worth more (homographies, notes)
LONG = 6.0  # plateaus longer than a factor e^6 are not more convincing
LAYER = 1.0  # length from which on a finer plateau that is as good is preferred
FEWER = 0.8  # of the rows: a finer plateau with fewer is of rows of their own
SHOULDER = 0.3  # of the best weight: plateaus with less are the shoulders of others
LENGTH = 0.26  # of a plateau, beyond the longest rival's, that makes a codimension clear
SAME = 2.5  # times the noise: members are so near to the same subspace of another start
OTHER = 3.0  # times as far: then it is another one
AS_GOOD = 0.75  # of the contrast, weight or rows: what has so much is as good
LOCAL_STARTS = 8  # rows whose neighbours propose: one is on a plane with a third of the rows
TRIES = 4  # paths where something is significant, but not clear: others do not cure that

# Layers: where the density of the distances stops falling.
KINK = 14.0  # twice the log-likelihood; single bells reach 11 in one of a hundred cases, 15 never
UNLIKE = 0.05  # the same for each row: a shape between those of Gauss, Laplace, Student has .03
ENOUGH = 12  # rows in a bin of the density
FEW = 0.05  # of the rows: smaller layers, as single rings of a scanner, are not the answer

# Checks.
APART = 0.8  # second eigenvalue of the walk: rows may be of two kinds (record 16, item 7)
AS_THIN = 1.2  # times the noise: what is as thin belongs together
GAP = 5.0  # between axes, where all rows are members: outliers five times as near make smaller ones
ENOUGH_FOR_WALK = 400  # rows to see two parts by, or two for each dimension

# The descents, and the law of outliers without preferred direction.
TAKE_OVER = 64  # evaluations without a clear answer after which paths decide,
ALL_ROWS = 0.98  # share of members from which on there is no other group
MISFIT = 2.0  # of the outliers' distances to that law: one in a thousand exceeds it by chance
NO_SUBSPACE = 0.5  # of the squared norm: so much noise is none, but the whole cloud
NOISE = 0.2  # of the inliers' squared norm: more noise than that is hardly a subspace
OVERLAP = 0.11  # of the labels: more would be wrong in any case,
OVERLAP_ROUGH = 0.25  # or so many, where the estimate is rough
LONG_ROWS = 8.0  # times the typical norm: a few such rows decide alone

# How many rows are enough.
SAMPLE = 8192  # in few columns,
SAMPLE_WIDE = 2048  # in more than FEW_COLUMNS,
FEW_COLUMNS = 16
SAMPLE_PER_COLUMN = 20  # or so many for each
MOST_PER_COLUMN = 400  # where more rows than that show nothing, still more will not
