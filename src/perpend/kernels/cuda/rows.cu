// G = sign(X B)^T (w X) for few features, in float32: one thread takes one row at a time.
//
// X is row-major, as it came. A warp's stage holds TILES x 32 rows; all COLUMNS x FEATURES sums of
// a thread live in its registers, and B in constant memory, so the loop is FMAs and little else.
// The objective needs no sum of its own: f = sum_i w_i sign(x_i.b) x_i.b = G.b.

extern "C" {
__constant__ float B[COLUMNS][FEATURES];
}

// sign(p), 0 for 0: one comparison and one logical operation.
DEVICE float sign(float p) {
  const word one = __float_as_uint(p != 0.f ? 1.f : 0.f);
  return __uint_as_float(one | (__float_as_uint(p) & 0x80000000u));
}

DEVICE void load_row(float x[FEATURES], const float* row) {
  if (FEATURES % 2 == 0) {  // pairs halve the number of loads
#pragma unroll
    for (int d = 0; d < FEATURES; d += 2) {
      float2 v = *reinterpret_cast<const float2*>(row + d);
      x[d] = v.x, x[d + 1] = v.y;
    }
  } else {
#pragma unroll
    for (int d = 0; d < FEATURES; ++d) x[d] = row[d];
  }
}

// What ROWS_AT_ONCE rows of a thread add to G: one load from constant memory serves them all.
template <int ROWS_AT_ONCE>
DEVICE void contribute(float sums[COLUMNS][FEATURES], const float x[ROWS_AT_ONCE][FEATURES],
                       const float w[ROWS_AT_ONCE]) {
#pragma unroll
  for (int c = 0; c < COLUMNS; ++c) {
    float p[ROWS_AT_ONCE];
#pragma unroll
    for (int d = 0; d < FEATURES; ++d)
#pragma unroll
      for (int r = 0; r < ROWS_AT_ONCE; ++r)
        p[r] = d == 0 ? x[r][0] * B[c][0] : fmaf(x[r][d], B[c][d], p[r]);
#pragma unroll
    for (int r = 0; r < ROWS_AT_ONCE; ++r) {
      const float s = WEIGHTED ? w[r] * sign(p[r]) : sign(p[r]);
#pragma unroll
      for (int d = 0; d < FEATURES; ++d) sums[c][d] = fmaf(s, x[r][d], sums[c][d]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)
l1_rows(const float* X, long long begin, long long end, long long n, const float* weight,
        double* slots) {
  extern __shared__ __align__(128) unsigned char shared[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Ring ring = make_ring(shared, 0, reinterpret_cast<wide*>(shared + DATA_BYTES));

  const long long whole = n / ROWS < end ? n / ROWS : end;  // steps that bulk copies can take
  auto fetch = [&](long long step) {
    if (lane != 0 || step >= whole) return;
    barrier_expect(ring.barrier(), STAGE_BYTES);
    copy_bulk(ring.target(), X + step * ROWS * FEATURES, STAGE_BYTES, ring.barrier());
  };

  float sums[COLUMNS][FEATURES] = {};
  const long long stride = (long long)gridDim.x * WARPS;
  long long step = begin + blockIdx.x + (long long)gridDim.x * warp;
  for (int s = 0; s < STAGES; ++s) {
    fetch(step + s * stride);
    ring.advance();
  }
  ring.parity = 0;

  for (; step < whole; step += stride) {
    ring.wait();
    const float* stage = reinterpret_cast<const float*>(
        shared + (warp * STAGES + ring.stage) * STAGE_BYTES);
#pragma unroll 1
    for (int tile = 0; tile < TILES; tile += 2) {
      float x[2][FEATURES], w[2] = {1.f, 1.f};
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        load_row(x[r], stage + ((tile + r) * 32 + lane) * FEATURES);
        if (WEIGHTED) w[r] = weight[step * ROWS + (tile + r) * 32 + lane];
      }
      contribute<2>(sums, x, w);
    }
    __syncwarp();
    fetch(step + STAGES * stride);
    ring.advance();
  }
  if (step < end)  // the last rows, fewer than a step
    for (long long row = step * ROWS + lane; row < n; row += 32) {
      float x[1][FEATURES], w[1] = {WEIGHTED ? weight[row] : 1.f};
#pragma unroll
      for (int d = 0; d < FEATURES; ++d) x[0][d] = X[row * FEATURES + d];
      contribute<1>(sums, x, w);
    }

  // Lanes are added in a fixed pattern, warps in order, both in double.
  __syncthreads();
  double* dump = reinterpret_cast<double*>(shared);
#pragma unroll
  for (int i = 0; i < VALUES; ++i) {
    double sum = sums[i / FEATURES][i % FEATURES];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) dump[warp * VALUES + i] = sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < VALUES; i += blockDim.x) {
    double sum = 0;
    for (int v = 0; v < WARPS; ++v) sum += dump[v * VALUES + i];
    slots[(long long)blockIdx.x * VALUES + i] = sum;
  }
}
