// The ordered sum over all slots: the same order whatever block was ready first.

// values[i] = sum_s slots[s][i]; launched with 32 x 32 threads for each 32 values.
extern "C" __global__ void __launch_bounds__(1024)
sum_slots(const double* slots, int count, int size, double* values) {
  __shared__ double partial[32][33];
  const int i = blockIdx.x * 32 + threadIdx.x;
  double sum = 0;
  if (i < size)
    for (int s = threadIdx.y; s < count; s += 32) sum += slots[(long long)s * size + i];
  partial[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && i < size) {
    for (int y = 1; y < 32; ++y) sum += partial[y][threadIdx.x];
    values[i] = sum;
  }
}

// f = G.b, for the kernel that leaves G alone; one warp for each column of B (D, k).
extern "C" __global__ void dot_columns(const double* G, const double* B, int D, int k, int column,
                                       double* f) {
  const int c = column + blockIdx.x;
  double sum = 0;
  for (int d = threadIdx.x; d < D; d += 32)
    sum += G[blockIdx.x * D + d] * (c < k ? B[(long long)d * k + c] : 0.0);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x == 0) f[blockIdx.x] = sum;
}
