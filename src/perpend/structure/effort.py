"""How long to search, and in how many rows. No value here decides about what was found."""

OCTAVE = 8  # scales in a factor of two

# A path: weighted PCA along shrinking scales.
SHRINK = 0.9  # of the scale, step by step; with 0.7 a road inside a street is lost
SLOW = 0.985  # the same where nothing was found: near the spectral limit
GIVE_UP = 16.0  # times below the last significant scale nothing more will come
TABLE_EVERY = 3  # steps between two tables; a table costs about as much as two steps
LOCAL_STARTS = 8  # rows whose neighbours propose: one is on a plane with a third of the rows
DRAWS = 256  # of a few rows, a subspace through each: a plane with a quarter of the rows is hit
ROWS_OF_DRAWS = 2048  # by which these are compared
TRIES = 4  # paths where something is significant, but not clear: others do not cure that
WIDE = 64  # columns from which on tables and spectra are saved where little can come of them
FEW_COLUMNS = 16  # up to which steps are cheap
FIRST_SIZES = 3  # codimensions from which reweighting starts before any path

# The descents.
TAKE_OVER = 64  # evaluations without a clear estimate after which paths decide; twice if it is wide

# How many rows are enough.
SAMPLE = 8192  # in few columns,
SAMPLE_WIDE = 2048  # in more,
SAMPLE_PER_COLUMN = 20  # or so many for each
MOST_PER_COLUMN = 400  # where more rows than that show nothing, still more will not
ENOUGH_FOR_WALK = 400  # rows to see two parts by, or two for each dimension
