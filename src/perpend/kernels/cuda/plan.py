"""Which kernel a shape gets, and how much of a multiprocessor each of its warps takes.

A tile kernel keeps its sums (16 columns of B x all features) in registers and its rows on the way
in shared memory. Both are counted here; the kernels check the bytes again when they are compiled.
"""

from dataclasses import asdict, dataclass
from functools import cache

SHARED_BYTES = 232_448  # what one block may have on compute capability 9.0
WARPS = 8
MOST_FEATURES = 512
MOST_PLAIN_FEATURES = 16  # of the row kernel
COLUMNS = (1, 2, 4, 6, 8, 10, 12, 16)  # for which the row kernel is compiled
TILE_ROWS = {True: 8, False: 16}  # by float64


@dataclass(frozen=True)
class TilePlan:
    """Sizes of a tile kernel, under the names that ``sizes.cuh`` gives them."""

    float64: bool
    parts: int  # of X: high and low, or high alone
    blocks: int  # of 8 features
    groups: int  # of 16 columns
    team: int  # warps that share the features
    tiles: int  # that a warp takes at a time
    warps: int
    stages: int
    weighted: bool = False

    @property
    def shared_bytes(self) -> int:
        """Shared memory of one block."""
        own = -(-self.blocks // self.team)
        real = 8 if self.float64 else 4
        ring = self.warps * self.stages * self.tiles * own * self.block_bytes
        dump = self.warps * 16 * self.groups * own * 8 * real
        fragments = self.team * (own if self.float64 else (own + 1) // 2) * self.groups * 1024
        halves = 1 if self.float64 else 2
        values = self.tiles * self.groups * halves
        meeting = self.warps * 2 * values * 128 * real if self.team > 1 else 0
        f = self.warps // self.team * 16 * self.groups * 8
        return max(ring, dump) + fragments + meeting + f + self.warps * self.stages * 8

    @property
    def block_bytes(self) -> int:
        """Bytes of one block of 8 features in a tile."""
        return 512 if self.float64 else 256 * self.parts

    @property
    def step_rows(self) -> int:
        """Rows that a team takes at a time."""
        return self.tiles * TILE_ROWS[self.float64]

    @property
    def sources(self) -> tuple[str, ...]:
        """The files that make up the kernel."""
        products = "f64.cuh" if self.float64 else "bf16.cuh"
        return ("warp.cuh", "sizes.cuh", "ring.cuh", products, "tiles.cu")


@dataclass(frozen=True)
class RowPlan:
    """Sizes of the row kernel, under the names that ``rows_sizes.cuh`` gives them."""

    features: int
    columns: int
    tiles: int  # of 32 rows, in a stage
    warps: int
    stages: int
    weighted: bool = False

    @property
    def shared_bytes(self) -> int:
        """Shared memory of one block."""
        ring = self.warps * self.stages * self.tiles * 32 * self.features * 4
        dump = self.warps * self.columns * self.features * 8
        return max(ring, dump) + self.warps * self.stages * 8

    @property
    def step_rows(self) -> int:
        """Rows that a warp takes at a time."""
        return 32 * self.tiles

    @property
    def sources(self) -> tuple[str, ...]:
        """The files that make up the kernel."""
        return ("warp.cuh", "rows_sizes.cuh", "ring.cuh", "rows.cu")


def macros(plan: TilePlan | RowPlan) -> tuple[tuple[str, int], ...]:
    """Return a plan as the macros that its kernel expects."""
    named = {name.upper(): int(value) for name, value in asdict(plan).items()}
    return (*named.items(), ("SHARED_BYTES", plan.shared_bytes))


@cache
def tile_plan(float64: bool, parts: int, features: int, columns: int, weighted: bool) -> TilePlan:
    """Return the sizes of the tile kernel for this many features and columns still to do.

    Eight warps with as many stages as fit read as fast as the memory allows; more warps have too
    few registers each. Copies of less than 4 KB are too small. In plain bf16, each arrangement of
    32 columns of B must serve two tiles, or reading it takes longer than reading X.
    """
    blocks = -(-features // 8)
    groups = 2 if columns > 16 and not float64 and blocks <= 32 else 1
    words = 4 * groups * (2 if float64 else 1)  # of sums in a thread, for each block
    most = 128 if float64 or groups == 2 else 104  # more words spill
    for team in (1, 2, 4):
        own = -(-blocks // team)
        copied = own * (512 if float64 else 256 * parts)  # bytes of a tile, by one warp
        tiles = 2 if groups == 2 and parts == 1 else 1
        while tiles < 4 and tiles * copied < 4096:
            tiles *= 2
        for stages in (4, 3, 2):
            plan = TilePlan(float64, parts, blocks, groups, team, tiles, WARPS, stages, weighted)
            if own * words <= most and plan.shared_bytes <= SHARED_BYTES:
                return plan
    raise ValueError(f"no tile kernel for {features} features")


@cache
def row_plan(features: int, columns: int, weighted: bool) -> RowPlan:
    """Return the sizes of the row kernel for this many features and columns still to do.

    A fit drops starts as they converge: a few sizes serve them all, so that few are compiled.
    """
    possible = [size for size in COLUMNS if size * features <= 128]
    columns = next((size for size in possible if size >= columns), possible[-1])
    warps = 12 if columns * features <= 100 else 8
    tiles = 4 if features >= 7 else 8  # copies of about 4 KB and more
    stages = 3 if features <= 12 else 2
    return RowPlan(features, columns, tiles, warps, stages, weighted)
