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
QUICK = 0.81  # the same with many columns, where every step costs a spectrum
SLOW = 0.985  # the same where nothing was found: near the spectral limit
CHEAP = 10  # columns up to which three steps are made at each scale
REACH = 2.0  # weights end at s (sqrt(k) + REACH)
GIVE_UP = 16.0  # times below the last significant scale nothing more will come
LOOK = 3  # steps between two tables; a table costs about as much as two steps
PROMISE = 0.3  # of the needed contrast, at the k normals of a path: a table is worth it
AGAIN = 0.9  # of the contrast of a clear structure: a path that sees so much has found it again
WIDE = 64  # columns from which on tables and spectra are saved where little can come of them

# Which codimension: evidence times persistence.
POWER = 0.5  # of the evidence: a long plateau with less is worth more (homographies, notes)
LONG = 6.0  # plateaus longer than a factor e^6 are not more convincing
NEARLY = 0.75  # of the best weight: a finer plateau with so much is preferred,
LAYER = 1.0  # if it is so long (a factor e)
FEWER = 0.8  # of the rows: a finer plateau with fewer is of rows of their own
RIVAL = 0.6  # of the weight: what a finer plateau needs to be a rival
SHOULDER = 0.3  # of the best weight: plateaus with less are the shoulders of others
FINER = 2 / 3  # of the length: a finer plateau that long is one
LENGTH = 0.26  # of a plateau, beyond the longest rival's, that makes a codimension clear
SAME = 2.5  # times the noise: members are so near to the same subspace of another start
OTHER = 3.0  # times as far: then it is another one
AS_GOOD = 0.7  # of the contrast: another subspace with so much is a rival
N_SAME = 256  # members to see that by
LOCAL_STARTS = 8  # rows whose neighbours propose: one is on a plane with a third of the rows
IN_VAIN = 3  # starts with many columns that show nothing: others will not either
TRIES = 4  # paths where something is significant, but not clear: others do not cure that
SETTLED = 4  # plateaus of one look at which axes are settled

# Layers: where the density of the distances stops falling.
KINK = 14.0  # twice the log-likelihood; single bells reach 11 in one of a hundred cases, 15 never
SUSPECT = 6.5  # the same from which on a layer is possible; 2 % of single bells reach it
UNLIKE = 0.05  # the same for each row: a shape between those of Gauss, Laplace, Student has .03
ENOUGH = 12  # rows in a bin of the density
FEW = 0.05  # of the rows: smaller layers, as single rings of a scanner, are not the answer
INSIDE = 0.7  # of the rows of a layer lie in another one that holds it
THINNER = 0.8  # of the radius of that one, at the most

# Checks.
APART = 0.8  # second eigenvalue of the walk: rows may be of two kinds (record 16, item 7)
MAJORITY = 0.5  # of the members: a part with so many may be the answer
AS_THIN = 1.2  # times the noise: what is as thin belongs together
GAP = 5.0  # between axes, where all rows are members: outliers five times as near make smaller ones
ENOUGH_FOR_WALK = 400  # rows to see two parts by, or two for each dimension

# The descents, and the law of outliers without preferred direction.
TAKE_OVER = 64  # evaluations without a clear answer after which paths decide,
TAKE_OVER_WIDE = 128  # or so many with more than WIDE columns, where paths take longer
ALL_ROWS = 0.98  # share of members from which on there is no other group
MISFIT = 2.0  # of the outliers' distances to that law: one in a thousand exceeds it by chance
NO_SUBSPACE = 0.5  # of the squared norm: so much noise is none, but the whole cloud
NOISE = 0.2  # of the inliers' squared norm: more noise than that is hardly a subspace
OVERLAP = 0.11  # of the labels: more would be wrong in any case,
OVERLAP_ROUGH = 0.25  # or so many, where the estimate is rough
TOO_SHORT = 0.25  # of the inliers: so many outliers are as near, but for their length
LONG_ROWS = 8.0  # times the typical norm: a few such rows decide alone

# How many rows are enough.
SAMPLE = 8192  # in few columns,
SAMPLE_WIDE = 2048  # in more than FEW_COLUMNS,
FEW_COLUMNS = 16
SAMPLE_PER_COLUMN = 20  # or so many for each
MOST_PER_COLUMN = 400  # where more rows than that show nothing, still more will not
