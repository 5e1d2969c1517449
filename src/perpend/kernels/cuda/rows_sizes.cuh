// The sizes that the row kernel is compiled for. Given as macros: FEATURES, COLUMNS, TILES, WARPS,
// STAGES, WEIGHTED and SHARED_BYTES.

constexpr int ROWS = 32 * TILES;
constexpr int STAGE_BYTES = ROWS * FEATURES * 4;
constexpr int RING_BYTES = WARPS * STAGES * STAGE_BYTES;
constexpr int VALUES = COLUMNS * FEATURES;
constexpr int DUMP_BYTES = WARPS * VALUES * 8;
constexpr int DATA_BYTES = RING_BYTES > DUMP_BYTES ? RING_BYTES : DUMP_BYTES;
static_assert(DATA_BYTES + WARPS * STAGES * 8 == SHARED_BYTES, "the plan and the kernel disagree");
