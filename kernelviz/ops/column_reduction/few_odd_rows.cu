// CUDA C++ kernel of `column_sum` for few rows that begin anywhere in a 16-byte vector. ELEMENT is float, __half or __nv_bfloat16; sums are in
// fp32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "loads_first.cuh"
#include "two_vectors.cuh"

#ifndef RESIDENT
#define RESIDENT 3
#endif
constexpr int THREADS = 256, WIDTH = 16 / sizeof(ELEMENT);

// One pass without shared memory: the rows of a column are all of one thread. The first `inner` threads have WIDTH columns each, from column
// WIDTH on; of each row these lie in two vectors, shifted by as many elements for all threads, and both are loaded, one of them mostly from
// L1. Neither begins before the matrix nor ends behind it, because at least WIDTH columns are left out at the begin of a row and at its end.
// Those are of one further thread each. ROWS rows of a thread are in flight, by RESIDENT blocks an SM. `shift`: elements by which x starts behind a multiple of 16 bytes.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) column_few_odd_rows(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m, int n, int inner, int shift) {
    const long long thread = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (thread >= inner) {
        const long long single = thread - inner, column = single < WIDTH ? single : single + (long long)inner * WIDTH;
        if (column >= n) {
            return;
        }
        float sum = 0.0f;
#pragma unroll 8
        for (long long row = 0; row < m; ++row) {
            sum += static_cast<float>(x[row * n + column]);
        }
        out[column] = static_cast<ELEMENT>(sum);
        return;
    }
    const long long column = (thread + 1) * WIDTH;
    float total[WIDTH] = {};
    for (long long row = 0; row < m; row += ROWS) {
        uint4 low[ROWS], high[ROWS];
        int from[ROWS];
        // Loads under predicates, not a loop over what remains, so that all of them are in flight at once.
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const long long at = (row + r) * n + column;
            from[r] = (int)((at + shift) % WIDTH);
            const uint4* vectors = reinterpret_cast<const uint4*>(x + at - from[r]);
            low[r] = row + r < m ? __ldg(vectors) : uint4{};
            high[r] = row + r < m ? __ldg(vectors + 1) : uint4{};
        }
        loads_first(low);
        loads_first(high);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const uint4 bits = bytes_of_two_vectors(low[r], high[r], from[r] * (int)sizeof(ELEMENT));
            const ELEMENT* elements = reinterpret_cast<const ELEMENT*>(&bits);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                total[e] += static_cast<float>(elements[e]);
            }
        }
    }
    struct alignas(16) Sums {
        ELEMENT of[WIDTH];
    } sums;
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) {
        sums.of[e] = static_cast<ELEMENT>(total[e]);
    }
    *reinterpret_cast<uint4*>(out + column) = *reinterpret_cast<const uint4*>(&sums);
}
