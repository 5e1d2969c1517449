// How rows reach a warp: its own ring of stages in shared memory, filled by bulk copies.
//
// No warp waits for another one here: lane 0 asks for the warp's next stage as soon as the warp has
// used one up, so STAGES - 1 copies are under way while it computes.

struct Ring {
  word data;       // address of the first stage
  word barriers;   // address of the first barrier
  int stage;       // the stage in use
  word parity;     // how often the ring went round, modulo 2

  DEVICE word target() const { return data + stage * STAGE_BYTES; }
  DEVICE word barrier() const { return barriers + stage * 8; }
  DEVICE void wait() const { barrier_wait(barrier(), parity); }
  DEVICE void advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// Sets up the rings of all warps; zeroes bytes that no copy will ever reach but a warp will read.
DEVICE Ring make_ring(unsigned char* data, int zeroed_bytes, wide* barriers) {
  for (int i = threadIdx.x; i < zeroed_bytes / 16; i += blockDim.x)
    reinterpret_cast<uint4*>(data)[i] = make_uint4(0, 0, 0, 0);
  int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0)
    for (int s = 0; s < STAGES; ++s) barrier_init(shared_address(barriers + warp * STAGES + s));
  barrier_publish();
  __syncthreads();
  return Ring{shared_address(data) + warp * STAGES * STAGE_BYTES,
              shared_address(barriers + warp * STAGES), 0, 0};
}
