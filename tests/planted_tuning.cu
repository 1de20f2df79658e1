// A sum whose tiles go through shared memory, for a tuning in which some configurations ask for too much of it.
// Defines: PARTS (tiles a block), FORGETS (the last of them is left out where it is 1).

extern "C" __global__ void __launch_bounds__(1024) tiles_through_shared(
    const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, long long n) {
  extern __shared__ float tile[];
  const long long first = static_cast<long long>(blockIdx.x) * blockDim.x * PARTS + threadIdx.x;
#pragma unroll
  for (int part = 0; part < PARTS - FORGETS; ++part) {
    const long long i = first + static_cast<long long>(part) * blockDim.x;
    if (i < n) {
      tile[threadIdx.x] = x[i];
      out[i] = tile[threadIdx.x] + y[i];
    }
  }
}
