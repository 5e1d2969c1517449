// f = sum_i w_i |x_i.b| and G = sign(X B)^T (w X) for 16 GROUPS columns of B, X read once.
//
// A warp takes a step of TILES tiles at a time, by itself:
//   P^T = B^T X^T      project
//   S = w sign(P)      in the registers where P was
//   G^T += S^T X       contribute; the sums stay in registers until the end
// Where those registers do not suffice, the TEAM warps of a team share the features, and add up
// their parts of P through shared memory. Each block leaves its sums in a slot of its own.

extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)
l1_tiles(const unsigned char* X, long long begin, long long end, const double* B, int k,
         int column, int D, const Real* weight, long long n, double* slots) {
  extern __shared__ __align__(128) unsigned char shared[];
  unsigned char* arranged = shared + DATA_BYTES;
  Real* meeting = reinterpret_cast<Real*>(arranged + B_BYTES);
  double* f_shared = reinterpret_cast<double*>(arranged + B_BYTES + MEETING_BYTES);
  wide* barriers = reinterpret_cast<wide*>(f_shared + TEAMS * COLUMNS);

  arrange(arranged, B, k, column, D);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int team = warp / TEAM, rank = warp % TEAM;
  arranged += rank * (B_BYTES / TEAM);
  Ring ring = make_ring(shared, EXTRA > 0 ? RING_BYTES : 0, barriers);

  auto fetch = [&](long long step) {
    if (lane != 0 || step >= end) return;
    const word bytes = owned_blocks(rank) * BLOCK_BYTES;
    const unsigned char* source =
        X + (step * TILES * BLOCKS + first_block(rank)) * (long long)BLOCK_BYTES;
    barrier_expect(ring.barrier(), TILES * bytes);
    if (TEAM == 1) {  // the tiles of a step lie side by side
      copy_bulk(ring.target(), source, STAGE_BYTES, ring.barrier());
    } else {
      for (int tile = 0; tile < TILES; ++tile)
        copy_bulk(ring.target() + tile * TILE_BYTES, source + tile * BLOCKS * BLOCK_BYTES, bytes,
                  ring.barrier());
    }
  };

  Real sums[GROUPS][OWN][4] = {};
  double f[GROUPS][2] = {};
  const long long stride = (long long)gridDim.x * TEAMS;
  long long step = begin + blockIdx.x + (long long)gridDim.x * team;
  for (int s = 0; s < STAGES; ++s) {
    fetch(step + s * stride);
    ring.advance();
  }
  ring.parity = 0;

  for (int turn = 0; step < end; step += stride, turn ^= 1) {
    Real w[TILES][HALVES][2];
#pragma unroll
    for (int i = 0; i < TILES * HALVES * 2; ++i) {
      const int tile = i / 2 / HALVES, half = i / 2 % HALVES;
      const long long row = (step * TILES + tile) * 8 * HALVES + row_of(half, i % 2);
      w[tile][half][i % 2] = !WEIGHTED ? Real(1) : row < n ? weight[row] : Real(0);
    }
    ring.wait();
    const unsigned char* stage = shared + (warp * STAGES + ring.stage) * STAGE_BYTES;
    Real p[TILES][GROUPS][HALVES][4] = {};
    project(p, stage, arranged);

    if (TEAM > 1) {  // two areas in turn, so that one meeting a step is enough
      Real(*q)[4] = &p[0][0][0];
      auto area = [&](int r, int i) {
        return meeting + ((((team * TEAM + r) * 2 + turn) * VALUES + i) * 32 + lane) * 4;
      };
#pragma unroll
      for (int i = 0; i < VALUES; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) area(rank, i)[e] = q[i][e];
      meet(1 + team, 32 * TEAM);
#pragma unroll
      for (int i = 0; i < VALUES; ++i)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          q[i][e] = area(0, i)[e];
#pragma unroll
          for (int r = 1; r < TEAM; ++r) q[i][e] += area(r, i)[e];
        }
    }
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
      contribute(f, sums, p[tile], w[tile], stage + tile * TILE_BYTES);
    __syncwarp();
    fetch(step + STAGES * stride);
    ring.advance();
  }

  // The sums of all warps meet in shared memory; teams are added in order, in double.
  __syncthreads();
  Real* dump = reinterpret_cast<Real*>(shared);
#pragma unroll
  for (int g = 0; g < GROUPS; ++g) {
#pragma unroll
    for (int i = 0; i < OWN * 4; ++i) {
      const int c = 16 * g + lane / 4 + i / 2 % 2 * 8, d = i / 4 * 8 + lane % 4 * 2 + i % 2;
      dump[(warp * COLUMNS + c) * OWN * 8 + d] = sums[g][i / 4][i % 4];
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      double sum = f[g][i];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      if (rank == 0 && lane % 4 == 0) f_shared[team * COLUMNS + 16 * g + lane / 4 + 8 * i] = sum;
    }
  }
  __syncthreads();
  double* slot = slots + (long long)blockIdx.x * COLUMNS * (FEATURES + 1);
  for (int c = warp; c < COLUMNS; c += WARPS) {
    double correction = 0;  // f moves by G.b' where B's arrangement misses b' of b
    for (int d = lane; d < FEATURES; d += 32) {
      int owner = 0;
      while (d / 8 >= first_block(owner) + owned_blocks(owner)) ++owner;
      double sum = 0;
      for (int t = 0; t < TEAMS; ++t)
        sum += dump[((t * TEAM + owner) * COLUMNS + c) * OWN * 8 + d - 8 * first_block(owner)];
      slot[c * FEATURES + d] = sum;
      correction += sum * missed(entry(B, d, column + c, D, k));
    }
    for (int step = 16; step > 0; step /= 2)
      correction += __shfl_xor_sync(0xffffffffu, correction, step);
    for (int t = 0; t < TEAMS; ++t) correction += f_shared[t * COLUMNS + c];
    if (lane == 0) slot[COLUMNS * FEATURES + c] = correction;
  }
}
