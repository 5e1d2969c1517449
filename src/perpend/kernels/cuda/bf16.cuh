// The two products on bf16 tensor cores. X = high (+ low) and B = b0 + b1, all bf16:
//   P = high b0 + (high b1 + low b0); low b1, 2^-18 of it, is left out.
// Signs are exact in bf16. Weighted signs are split like B.

// Lays out b0 and b1 as left fragments: fragments[rank][pair of blocks][group][part][lane].
DEVICE void arrange(unsigned char* target, const double* B, int k, int column, int D) {
  uint4* fragments = reinterpret_cast<uint4*>(target);
  for (int i = threadIdx.x; i < TEAM * FRAGMENTS * GROUPS * 32; i += blockDim.x) {
    int lane = i % 32, group = i / 32 % GROUPS, pair = i / 32 / GROUPS % FRAGMENTS;
    int rank = i / 32 / GROUPS / FRAGMENTS;
    word high[4], low[4];
    for (int r = 0; r < 4; ++r) {
      int c = column + 16 * group + lane / 4 + 8 * (r % 2);
      int block = 2 * pair + r / 2;
      int d = block < owned_blocks(rank) ? 8 * (first_block(rank) + block) + 2 * (lane % 4) : D;
      float first = (float)entry(B, d, c, D, k), second = (float)entry(B, d + 1, c, D, k);
      high[r] = pack(first, second);
      low[r] = pack(first - first_of(high[r]), second - second_of(high[r]));
    }
    fragments[i / 32 * 64 + lane] = make_uint4(high[0], high[1], high[2], high[3]);
    fragments[i / 32 * 64 + 32 + lane] = make_uint4(low[0], low[1], low[2], low[3]);
  }
}

// What b0 + b1 misses of b.
DEVICE double missed(double b) {
  const float b0 = first_of(pack((float)b, 0.f)), b1 = first_of(pack((float)b - b0, 0.f));
  return b - b0 - b1;
}

DEVICE void load_left(word a[4], const uint4* p) {
  uint4 v = *p;
  a[0] = v.x, a[1] = v.y, a[2] = v.z, a[3] = v.w;
}

// What one or (if `whole`) two blocks of features add to P^T of the rows in a stage.
template <bool whole>
DEVICE void project_fragment(float p[TILES][GROUPS][2][4], float small[TILES][GROUPS][2][4],
                             word blocks, const uint4* fragments) {
  const int lane = threadIdx.x % 32;
  word b0[GROUPS][4], b1[GROUPS][4];
#pragma unroll
  for (int g = 0; g < GROUPS; ++g) {
    load_left(b0[g], fragments + g * 64 + lane);
    load_left(b1[g], fragments + g * 64 + 32 + lane);
  }
  // matrices in this order: rows 0-7 of both blocks, rows 8-15 of both blocks
  blocks += whole ? lane / 8 % 2 * BLOCK_BYTES + lane / 16 * 128 + lane % 8 * 16 : lane % 16 * 16;
#pragma unroll
  for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
      word x[4];
      if (whole) load4(x, blocks + tile * TILE_BYTES + part * 256);
      else load2(x, blocks + tile * TILE_BYTES + part * 256);
#pragma unroll
      for (int g = 0; g < GROUPS; ++g)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float* large = part == 0 ? p[tile][g][half] : small[tile][g][half];
          if (whole) {
            multiply16(large, b0[g], x[2 * half], x[2 * half + 1]);
            if (part == 0) multiply16(small[tile][g][half], b1[g], x[2 * half], x[2 * half + 1]);
          } else {
            multiply8(large, b0[g], x[half]);
            if (part == 0) multiply8(small[tile][g][half], b1[g], x[half]);
          }
        }
    }
}

// P^T of the rows in a stage, over the features that this warp owns.
DEVICE void project(float p[TILES][GROUPS][2][4], const unsigned char* stage,
                    const unsigned char* arranged) {
  const uint4* fragments = reinterpret_cast<const uint4*>(arranged);
  const word blocks = shared_address(stage);
  float small[TILES][GROUPS][2][4] = {};  // small terms meet one another first
#pragma unroll 2
  for (int i = 0; i < OWN / 2; ++i)
    project_fragment<true>(p, small, blocks + 2 * i * BLOCK_BYTES, fragments + i * GROUPS * 64);
  if (OWN % 2)
    project_fragment<false>(p, small, blocks + (OWN - 1) * BLOCK_BYTES,
                            fragments + OWN / 2 * GROUPS * 64);
#pragma unroll
  for (int i = 0; i < VALUES * 4; ++i) (&p[0][0][0][0])[i] += (&small[0][0][0][0])[i];
}

// G^T += S^T X for one tile. Without `with_low`, S is small itself and meets only the high part.
template <bool with_low>
DEVICE void collect(float sums[GROUPS][OWN][4], const unsigned char* tile,
                    const word s[GROUPS][4]) {
  const int lane = threadIdx.x % 32;
  const word base = shared_address(tile);
#pragma unroll
  for (int block = 0; block < OWN; block += 3 - PARTS) {
    const bool four = PARTS == 2 ? with_low : block + 1 < OWN;  // two parts, or two blocks
    word x[4];
    if (four) load4_transposed(x, base + block * BLOCK_BYTES + lane * 16);
    else load2_transposed(x, base + block * BLOCK_BYTES + lane % 16 * 16);
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
      multiply16(sums[g][block], s[g], x[0], x[1]);
      if (four) multiply16(sums[g][block + 2 - PARTS], s[g], x[2], x[3]);
    }
  }
}

// The row of P's value i (0 or 1) in half `half`.
DEVICE int row_of(int half, int i) { return 8 * half + 2 * (threadIdx.x % 4) + i; }

// What one tile adds to f and G.
DEVICE void contribute(double f[GROUPS][2], float sums[GROUPS][OWN][4],
                       const float p[GROUPS][HALVES][4], const float w[HALVES][2],
                       const unsigned char* tile) {
  word s[GROUPS][4], s_low[GROUPS][4];
#pragma unroll
  for (int g = 0; g < GROUPS; ++g)
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // register i of a left fragment
      const float *v = p[g][i / 2] + i % 2 * 2, *u = w[i / 2];
      f[g][i % 2] += (double)(u[0] * fabsf(v[0]) + u[1] * fabsf(v[1]));
      const float s0 = u[0] * sign(v[0]), s1 = u[1] * sign(v[1]);
      s[g][i] = pack(s0, s1);
      s_low[g][i] = pack(s0 - first_of(s[g][i]), s1 - second_of(s[g][i]));
    }
  collect<true>(sums, tile, s);
  if (WEIGHTED) collect<false>(sums, tile, s_low);
}
