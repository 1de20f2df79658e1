// CUDA C++ kernel of `row_sum` of few short rows, for one length only. ELEMENT is float, __half or __nv_bfloat16; sums are in fp32. With the
// length as a constant, nothing is computed about ends or loops, and all loads of a thread are in flight at once.
#include "vec16.cuh"

// LENGTH elements a row, LANES threads that share it, a power of two.
#ifndef LENGTH
#define LENGTH 1
#define LANES 1
#endif
constexpr int THREADS = 128;
constexpr int EACH = (LENGTH + LANES - 1) / LANES;

extern "C" __global__ void __launch_bounds__(THREADS) row_sum_known_length(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, int m) {
    const int thread = blockIdx.x * THREADS + threadIdx.x;
    const int row = thread / LANES, lane = thread % LANES;
    ELEMENT v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int column = k * LANES + lane;
        v[k] = row < m && column < LENGTH ? x[row * LENGTH + column] : from_float<ELEMENT>(0.0f);
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        sum += to_float(v[k]);
    }
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, apart);
    }
    if (row < m && lane == 0) {
        out[row] = from_float<ELEMENT>(sum);
    }
}
