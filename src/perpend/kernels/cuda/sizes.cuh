// The sizes that a tile kernel is compiled for. Given as macros: FLOAT64, PARTS, BLOCKS, GROUPS,
// TEAM, TILES, WARPS, STAGES, WEIGHTED and SHARED_BYTES.
//
// Rows are stored in tiles, and a tile in blocks of 8 columns, so that any range of columns of a
// tile is one run of bytes:
//   bf16:    X[tile][block][part][row 16][column 8]      high part, then (PARTS = 2) low part
//   float64: X[tile][block][half][row 8][column 4]       columns 0-3, then columns 4-7

#if FLOAT64
typedef double Real;             // of products and sums
constexpr int HALVES = 1;        // a tile has 8 HALVES rows
constexpr int BLOCK_BYTES = 512;
constexpr int FRAGMENT_BLOCKS = 1;  // a left fragment of B is 16 columns x 8 features
#else
typedef float Real;
constexpr int HALVES = 2;
constexpr int BLOCK_BYTES = 256 * PARTS;
constexpr int FRAGMENT_BLOCKS = 2;  // 16 columns x 16 features, as high and low part
#endif

constexpr int COLUMNS = 16 * GROUPS;  // of B
constexpr int FEATURES = 8 * BLOCKS;
constexpr int TEAMS = WARPS / TEAM;   // the warps of a team share the features
constexpr int SHARE = BLOCKS / TEAM, EXTRA = BLOCKS % TEAM;  // the first EXTRA ranks own one more
constexpr int OWN = SHARE + (EXTRA > 0);
constexpr int FRAGMENTS = (OWN + FRAGMENT_BLOCKS - 1) / FRAGMENT_BLOCKS;  // of 1024 bytes each
constexpr int TILE_BYTES = OWN * BLOCK_BYTES;
constexpr int STAGE_BYTES = TILES * TILE_BYTES;

constexpr int RING_BYTES = WARPS * STAGES * STAGE_BYTES;
constexpr int DUMP_BYTES = WARPS * COLUMNS * OWN * 8 * (int)sizeof(Real);
constexpr int DATA_BYTES = RING_BYTES > DUMP_BYTES ? RING_BYTES : DUMP_BYTES;
constexpr int B_BYTES = TEAM * FRAGMENTS * GROUPS * 1024;
constexpr int VALUES = TILES * GROUPS * HALVES;  // fragments of P in a step
constexpr int MEETING_BYTES = TEAM > 1 ? WARPS * 2 * VALUES * 32 * 4 * (int)sizeof(Real) : 0;
constexpr int F_BYTES = TEAMS * COLUMNS * 8;
constexpr int BARRIER_BYTES = WARPS * STAGES * 8;
static_assert(DATA_BYTES + B_BYTES + MEETING_BYTES + F_BYTES + BARRIER_BYTES == SHARED_BYTES,
              "the plan and the kernel disagree");

DEVICE int first_block(int rank) { return rank * SHARE + (rank < EXTRA ? rank : EXTRA); }
DEVICE int owned_blocks(int rank) { return SHARE + (rank < EXTRA); }
DEVICE Real sign(Real p) { return (p > 0 ? Real(1) : Real(0)) - (p < 0 ? Real(1) : Real(0)); }

// One entry of B (D, k), zero outside.
DEVICE double entry(const double* B, int d, int c, int D, int k) {
  return d < D && c < k ? B[(long long)d * k + c] : 0.0;
}
