// The two products on float64 tensor cores.
//
// Both read 8 x 4 doubles of a block at once: rows g, columns t, then rows 2t (or 2t + 1), columns
// g % 4. Exchanging rows 4 with 5 and 6 with 7 makes both free of bank conflicts.
DEVICE int place(int row) { return row ^ row >> 2; }

// Lays out B as left fragments: fragments[rank][block][group][lane][4].
DEVICE void arrange(unsigned char* target, const double* B, int k, int column, int D) {
  double* fragments = reinterpret_cast<double*>(target);
  for (int i = threadIdx.x; i < TEAM * OWN * GROUPS * 128; i += blockDim.x) {
    int r = i % 2 + i / 64 % 2 * 2, lane = i / 2 % 32, group = i / 128 % GROUPS;
    int block = i / 128 / GROUPS % OWN, rank = i / 128 / GROUPS / OWN;
    int c = column + 16 * group + lane / 4 + 8 * (r % 2);
    int d = block < owned_blocks(rank) ? 8 * (first_block(rank) + block) + lane % 4 + r / 2 * 4 : D;
    fragments[i] = entry(B, d, c, D, k);
  }
}

DEVICE double missed(double) { return 0; }

// P^T of the rows in a stage, over the features that this warp owns.
DEVICE void project(double p[TILES][GROUPS][HALVES][4], const unsigned char* stage,
                    const unsigned char* arranged) {
  const int lane = threadIdx.x % 32;
  const double2* fragments = reinterpret_cast<const double2*>(arranged) + lane;
  const double* x = reinterpret_cast<const double*>(stage) + 4 * place(lane / 4) + lane % 4;
#pragma unroll
  for (int block = 0; block < OWN; ++block) {
    double b[GROUPS][4];
#pragma unroll
    for (int i = 0; i < GROUPS * 2; ++i) {
      double2 v = fragments[(block * GROUPS * 2 + i) * 32];
      b[i / 2][i % 2 * 2] = v.x, b[i / 2][i % 2 * 2 + 1] = v.y;
    }
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
      const double* v = x + tile * (TILE_BYTES / 8) + block * 64;
#pragma unroll
      for (int g = 0; g < GROUPS; ++g) multiply8(p[tile][g][0], b[g], v[0], v[32]);
    }
  }
}

// The row of P's value i (0 or 1).
DEVICE int row_of(int, int i) { return place(2 * (threadIdx.x % 4) + i); }

// What one tile adds to f and G. The even rows come first in the second product's sum over rows,
// so that the values of P lie where their signs are needed.
DEVICE void contribute(double f[GROUPS][2], double sums[GROUPS][OWN][4],
                       const double p[GROUPS][HALVES][4], const double w[HALVES][2],
                       const unsigned char* tile) {
  const int lane = threadIdx.x % 32;
  double s[GROUPS][4];
#pragma unroll
  for (int g = 0; g < GROUPS; ++g)
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // column g or g + 8, row 2t or 2t + 1
      const double v = p[g][0][i % 2 * 2 + i / 2], u = w[0][i / 2];
      f[g][i % 2] += u * fabs(v);
      s[g][i] = u * sign(v);
    }
  const double* x = reinterpret_cast<const double*>(tile) + lane / 16 * 32 + lane / 4 % 4;
  const double *even = x + 4 * place(lane % 4 * 2), *odd = x + 4 * place(lane % 4 * 2 + 1);
#pragma unroll
  for (int block = 0; block < OWN; ++block)
#pragma unroll
    for (int g = 0; g < GROUPS; ++g)
      multiply8(sums[g][block], s[g], even[block * 64], odd[block * 64]);
}
