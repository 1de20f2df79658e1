// CUDA C++ kernel of `column_sum` for few rows. ELEMENT is float, __half or __nv_bfloat16; sums are in fp32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "access_bits.cuh"
#include "loads_first.cuh"

// A thread has SETS vectors of EACH columns, THREADS vectors apart, and ROWS rows of them in flight. EACH divides the length of a row, and x
// starts on a multiple of the vector's size, so that each vector of each row does. ONE_PASS: there are at most ROWS rows.
#ifndef EACH
#define EACH 1
#define SETS 1
#define ROWS 1
#define ONE_PASS 0
#endif
constexpr int THREADS = 256;

using Bits = BitsOf<EACH * sizeof(ELEMENT)>::Type;
struct alignas(EACH * sizeof(ELEMENT)) Vector {
    ELEMENT of[EACH];
};

// One pass without shared memory: the rows of a column are all of one thread. Without a smallest number of blocks in the launch bounds, ptxas
// uses 32 to 40 registers and loads less at a time.
extern "C" __global__ void __launch_bounds__(THREADS, 3) column_few_rows(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m, int n) {
    const int vectors = n / EACH;
    const long long mine = (long long)blockIdx.x * (THREADS * SETS) + threadIdx.x;
    float total[SETS][EACH] = {};
    for (long long row = 0; row < (ONE_PASS ? 1 : m); row += ROWS) {
        Bits bits[ROWS][SETS];
        // Loads under predicates, not a loop over what remains, so that all of them are in flight at once.
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
#pragma unroll
            for (int s = 0; s < SETS; ++s) {
                const long long vector = mine + s * THREADS;
                const bool inside = row + r < m && vector < vectors;
                bits[r][s] = inside ? __ldg(reinterpret_cast<const Bits*>(x + (row + r) * n) + vector) : Bits{};
            }
        }
        loads_first(bits);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
#pragma unroll
            for (int s = 0; s < SETS; ++s) {
                const Vector& vector = reinterpret_cast<const Vector&>(bits[r][s]);
#pragma unroll
                for (int e = 0; e < EACH; ++e) {
                    total[s][e] += static_cast<float>(vector.of[e]);
                }
            }
        }
    }
#pragma unroll
    for (int s = 0; s < SETS; ++s) {
        if (mine + s * THREADS < vectors) {
            Vector sums;
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                sums.of[e] = static_cast<ELEMENT>(total[s][e]);
            }
            reinterpret_cast<Bits*>(out)[mine + s * THREADS] = reinterpret_cast<const Bits&>(sums);
        }
    }
}
