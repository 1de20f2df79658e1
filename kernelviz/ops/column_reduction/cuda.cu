// CUDA C++ kernels of `column_sum`. ELEMENT is float, __half or __nv_bfloat16; sums are in fp32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "skinny.cuh"

// 1. A thread a column: neighbouring threads read neighbouring elements of a row, so the loads of a warp are whole lines. But there
// are only as many threads as columns.
extern "C" __global__ void __launch_bounds__(128) column_per_thread(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m, int n) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= n) {
        return;
    }
    float sum = 0.0f;
#pragma unroll 8
    for (long long row = 0; row < m; ++row) {
        sum += static_cast<float>(x[row * n + column]);
    }
    out[column] = static_cast<ELEMENT>(sum);
}

// EACH columns of a thread: a 16-byte vector, or one column where rows are not whole vectors. LANES threads of a block side by side,
// THREADS / LANES below each other.
#ifndef EACH
#define EACH 1
#define LANES 32
#endif
constexpr int THREADS = 256, GROUPS = THREADS / LANES, COLUMNS = LANES * EACH;

struct alignas(EACH * sizeof(ELEMENT)) Vector {
    ELEMENT of[EACH];
};

// The sum over a block's rows of column t of its strip, for the threads t < COLUMNS.
__device__ __forceinline__ float sum_of_block(
    const ELEMENT* __restrict__ x, long long first, long long last, int n, int strip) {
    __shared__ float sums[GROUPS][COLUMNS];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const int column = strip * COLUMNS + lane * EACH;
    float total[EACH] = {};
    if (column < n) {
        // Four loads of a thread are in flight at once: 16 KiB a block.
#pragma unroll 4
        for (long long row = first + group; row < last; row += GROUPS) {
            const Vector vector = *reinterpret_cast<const Vector*>(x + row * n + column);
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                total[e] += static_cast<float>(vector.of[e]);
            }
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        sums[group][e * LANES + lane] = total[e];  // neighbouring threads, neighbouring banks
    }
    __syncthreads();
    const int t = threadIdx.x;
    float sum = 0.0f;
    if (t < COLUMNS) {
#pragma unroll 8
        for (int g = 0; g < GROUPS; ++g) {
            sum += sums[g][t % EACH * LANES + t / EACH];
        }
    }
    return sum;
}

// 2. Several blocks a strip of columns, each with `part` rows. Each adds its sums to numbers in L2.
extern "C" __global__ void __launch_bounds__(256) column_atomics(
    const ELEMENT* __restrict__ x, float* __restrict__ totals, long long m, int n, int strips, long long part) {
    const int strip = blockIdx.x % strips;
    const long long first = blockIdx.x / strips * part;
    const float sum = sum_of_block(x, first, min(first + part, m), n, strip);
    const int column = strip * COLUMNS + threadIdx.x;
    if (threadIdx.x < COLUMNS && column < n) {
        atomicAdd(totals + column, sum);
    }
}

// After 2: converts the sums to the output's format.
extern "C" __global__ void __launch_bounds__(256) column_finish(
    const float* __restrict__ totals, ELEMENT* __restrict__ out, int n) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < n) {
        out[column] = static_cast<ELEMENT>(totals[column]);
    }
}

// 3. The same blocks, but they store their sums, and the block of a strip that finishes last adds them up in order: one launch, and the
// same result in each call. `arrived` counts the finished blocks of each strip; it is zero before and afterwards.
extern "C" __global__ void __launch_bounds__(256) column_split(
    const ELEMENT* __restrict__ x, float* __restrict__ sums, unsigned* __restrict__ arrived, ELEMENT* __restrict__ out,
    long long m, int n, int strips, int parts, long long part) {
    const int strip = blockIdx.x % strips, piece = blockIdx.x / strips;
    const long long first = piece * part;
    float sum = sum_of_block(x, first, min(first + part, m), n, strip);
    const int column = strip * COLUMNS + threadIdx.x;
    const bool mine = threadIdx.x < COLUMNS && column < n;
    if (parts > 1) {
        if (mine) {
            sums[(long long)piece * n + column] = sum;
        }
        if (!is_last_to_arrive(arrived + strip, parts)) {
            return;
        }
        sum = mine ? sum_of_parts(sums + column, n, parts) : 0.0f;
    }
    if (mine) {
        out[column] = static_cast<ELEMENT>(sum);
    }
}
