// The backward pass of `softmax` for rows that divide a 16-byte vector: dx = y (dy - Σ y dy), so that a vector holds whole rows. The matrix is walked
// as if it had no rows: nothing is exchanged, and no address depends on a row.
#include "conversions.cuh"

// LENGTH: elements of a row. A thread has VECTORS vectors of each tensor, a block's width apart. STREAMING: loads are evicted first.
#ifndef LENGTH
#define LENGTH 1
#define VECTORS 1
#define THREADS 128
#define STREAMING 0
#endif

using W = Vec16<ELEMENT>;
constexpr int IN_VECTOR = W::WIDTH, PIECE = THREADS * VECTORS;
static_assert(IN_VECTOR % LENGTH == 0);

// In fp32, the products of a row in their order.
template <int COUNT> __device__ __forceinline__ void rows_gradient(const float (&y)[COUNT], float (&dy)[COUNT]) {
#pragma unroll
    for (int row = 0; row < COUNT; row += LENGTH) {
        float sum = 0.0f;
#pragma unroll
        for (int e = row; e < row + LENGTH; ++e) {
            sum = fmaf(y[e], dy[e], sum);
        }
#pragma unroll
        for (int e = row; e < row + LENGTH; ++e) {
            dy[e] = y[e] * (dy[e] - sum);
        }
    }
}

__device__ __forceinline__ W load(const ELEMENT* from, long long vector) {
    const W* vectors = reinterpret_cast<const W*>(from) + vector;
    return STREAMING ? load_streaming(vectors) : load_vec16(vectors);
}

// `elements`: of the matrix, which is whole rows.
extern "C" __global__ void __launch_bounds__(THREADS) softmax_backward_short_rows(
    const ELEMENT* __restrict__ y, const ELEMENT* __restrict__ dy, ELEMENT* __restrict__ dx, long long elements) {
    const long long first = (long long)blockIdx.x * PIECE + threadIdx.x, vectors = elements / IN_VECTOR;
    W of_y[VECTORS], of_dy[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        if (first + k * THREADS < vectors) {
            of_y[k] = load(y, first + k * THREADS);
            of_dy[k] = load(dy, first + k * THREADS);
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        if (first + k * THREADS < vectors) {
            float of_row[IN_VECTOR], gradient[IN_VECTOR];
            widen(of_y[k], of_row);
            widen(of_dy[k], gradient);
            rows_gradient(of_row, gradient);
            store_vec16(reinterpret_cast<W*>(dx) + first + k * THREADS, narrow<ELEMENT>(gradient));
        }
    }
    // Rows behind the last whole vector, one a thread.
    const long long behind = vectors * IN_VECTOR + threadIdx.x * LENGTH;
    if (blockIdx.x == 0 && behind < elements) {
        float of_row[LENGTH], gradient[LENGTH];
#pragma unroll
        for (int e = 0; e < LENGTH; ++e) {
            of_row[e] = to_float(y[behind + e]);
            gradient[e] = to_float(dy[behind + e]);
        }
        rows_gradient(of_row, gradient);
#pragma unroll
        for (int e = 0; e < LENGTH; ++e) {
            dx[behind + e] = from_float<ELEMENT>(gradient[e]);
        }
    }
}
