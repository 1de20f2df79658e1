// CUDA C++ kernel of `column_sum` for some rows of middling width, in one pass: a block has all rows of a strip of columns, or the blocks of a
// cluster share them. ELEMENT is float, __half or __nv_bfloat16; sums are in fp32 and of a fixed order.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "access_bits.cuh"
#include "cluster_gather.cuh"
#include "loads_first.cuh"
#include "one_element.cuh"

// A strip is LANES vectors of EACH columns wide. EACH divides the length of a row, and x starts on a multiple of the vector's size, so that each
// vector of each row does. The rows are of GROUPS threads below each other in each of CLUSTER blocks; a thread has ROWS of them in flight.
// ONE_PASS: it has no more. KNOWN_M and KNOWN_N: the size, or 0 where it is an argument. Vectors of less than 8 bytes are many loads for a strip;
// with a known size, they have few instructions, because their distances are constants.
#ifndef EACH
#define EACH 1
#define LANES 1
#define GROUPS 1
#define ROWS 1
#define CLUSTER 1
#define ONE_PASS 0
#define KNOWN_M 0
#define KNOWN_N 0
#endif
constexpr int THREADS = LANES * GROUPS, COLUMNS = LANES * EACH;
// Shared memory has quarters of a vector behind each other, so that neighbouring threads store neighbouring 16 bytes.
constexpr int CHUNK = EACH < 4 ? EACH : 4, CHUNKS = EACH / CHUNK, ROUNDS = (COLUMNS + THREADS - 1) / THREADS;

using Bits = BitsOf<EACH * sizeof(ELEMENT)>::Type;
struct alignas(EACH * sizeof(ELEMENT)) Vector {
    ELEMENT of[EACH];
};
struct alignas(CHUNK * sizeof(float)) Chunk {
    float of[CHUNK];
};

// The sum of what all groups have in one place, by four sums, so that few additions wait for each other.
__device__ __forceinline__ float sum_of_groups(const float* from) {
    constexpr int SUMS = GROUPS < 4 ? GROUPS : 4;
    float sums[SUMS] = {};
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        sums[g % SUMS] += from[g * COLUMNS];
    }
    float sum = sums[0];
#pragma unroll
    for (int s = 1; s < SUMS; ++s) {
        sum += sums[s];
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    column_strips(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, int rows, int columns) {
    const int m = KNOWN_M > 0 ? KNOWN_M : rows, n = KNOWN_N > 0 ? KNOWN_N : columns;
    __shared__ __align__(16) float own[GROUPS * COLUMNS];
    __shared__ float received[CLUSTER * COLUMNS];
    if constexpr (CLUSTER > 1) {
        block_has_started();
    }
    const unsigned t = threadIdx.x, lane = t % LANES, group = t / LANES, block = CLUSTER > 1 ? block_in_cluster() : 0;
    const unsigned first_vector = blockIdx.x / CLUSTER * LANES, vector = first_vector + lane;
    const int first = static_cast<int>(block * GROUPS + group);
    // Lanes behind the last vector add that one up again; their sums are not stored.
    const ELEMENT* from = x + (static_cast<long long>(first) * n + min(vector * EACH, static_cast<unsigned>(n - EACH)));
    const long long step = static_cast<long long>(CLUSTER * GROUPS) * n;
    // Where a thread stores sums: a place is that of a chunk of a vector and of a column in it.
    ELEMENT* to[ROUNDS];
    bool stores[ROUNDS];
#pragma unroll
    for (int r = 0; r < ROUNDS; ++r) {
        const unsigned place = r * THREADS + t;
        const unsigned column =
            first_vector * EACH + place / CHUNK % LANES * EACH + place / (LANES * CHUNK) * CHUNK + place % CHUNK;
        stores[r] = place < COLUMNS && column < static_cast<unsigned>(n);
        to[r] = address_now(out + column);
    }
    float total[EACH] = {};
    int row = first;
#pragma unroll 1
    do {
        Bits bits[ROWS];
        // Loads under predicates, not a loop over what remains, so that all of them are in flight at once.
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            // Compile-time true in all rows but the last of a known size.
            const bool there = (ONE_PASS && KNOWN_M >= (r + 1) * (CLUSTER * GROUPS)) || row + r * (CLUSTER * GROUPS) < m;
            bits[r] = there ? __ldg(reinterpret_cast<const Bits*>(from + r * step)) : Bits{};
        }
        loads_first(bits);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const Vector& elements = reinterpret_cast<const Vector&>(bits[r]);
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                total[e] += static_cast<float>(elements.of[e]);
            }
        }
        from += ROWS * step;
        row += ROWS * CLUSTER * GROUPS;
    } while (!ONE_PASS && row < m);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        Chunk chunk;
#pragma unroll
        for (int e = 0; e < CHUNK; ++e) {
            chunk.of[e] = total[c * CHUNK + e];
        }
        reinterpret_cast<Chunk*>(own)[(group * CHUNKS + c) * LANES + lane] = chunk;
    }
    __syncthreads();
    if constexpr (CLUSTER > 1) {
        wait_for_started();
    }
    float sums[ROUNDS];
#pragma unroll
    for (int r = 0; r < ROUNDS; ++r) {
        const unsigned place = r * THREADS + t;
        sums[r] = 0.0f;
        if (place < COLUMNS) {
            sums[r] = sum_of_groups(own + place);
            if constexpr (CLUSTER > 1) {
                store_in_block(0, received + block * COLUMNS + place, sums[r]);
            }
        }
    }
    if constexpr (CLUSTER > 1) {
        block_has_stored();
        if (block > 0) {
            return;
        }
        wait_for_stored();
    }
#pragma unroll
    for (int r = 0; r < ROUNDS; ++r) {
        if (stores[r]) {
            float sum = sums[r];
            if constexpr (CLUSTER > 1) {
                sum = 0.0f;
#pragma unroll
                for (int b = 0; b < CLUSTER; ++b) {
                    sum += received[b * COLUMNS + r * THREADS + t];
                }
            }
            *to[r] = static_cast<ELEMENT>(sum);
        }
    }
}
