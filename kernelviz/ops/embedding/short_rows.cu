// CUDA C++ kernel that copies rows that ids name, compiled for the length of a row. VECTOR is the widest of unsigned short, unsigned,
// uint2 and uint4 that every row starts on and is a whole number of; nothing is converted, so bits stay as they are.
#include "loads_first.cuh"

// VECTORS: vectors of a row. UNROLL: vectors of a thread. BLOCK_THREADS: of a block of the first kernel. ONE_ROW: x has one row, which each id
// names, so that its vectors are read without a wait for the id. WIDE: whether 32 bits are too few to count all vectors.
#ifndef VECTORS
#define VECTORS 1
#define BLOCK_THREADS 128
#define ONE_ROW 0
#define WIDE 0
#endif
#if WIDE
using Index = unsigned long long;
#else
using Index = unsigned;
#endif
constexpr int THREADS = 256, PIECE = THREADS * UNROLL;

// 1. One vector a thread, for few rows: no branch, so that nothing waits for one, and threads behind the last vector copy it again.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) gather_one_vector(
    const VECTOR* __restrict__ x, const long long* __restrict__ ids, VECTOR* __restrict__ out, Index last) {
    const Index i = (Index)blockIdx.x * BLOCK_THREADS + threadIdx.x;
    const Index at = i < last ? i : last;
    const Index from = ONE_ROW ? 0 : static_cast<Index>(__ldg(ids + at / VECTORS));
    out[at] = __ldg(x + (from * VECTORS + at % VECTORS));
}

// 2. The output as one array of `total` vectors, of which consecutive threads write consecutive ones. A division by a constant is a multiplication.
// UNROLL ids and then as many vectors are in flight.
extern "C" __global__ void __launch_bounds__(THREADS) gather_short_rows(
    const VECTOR* __restrict__ x, const long long* __restrict__ ids, VECTOR* __restrict__ out, Index total) {
    const Index first = (Index)blockIdx.x * PIECE + threadIdx.x;
    Index from[UNROLL];
    VECTOR loaded[UNROLL];
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
        const Index at = first + k * THREADS;
        from[k] = !ONE_ROW && at < total ? static_cast<Index>(__ldg(ids + at / VECTORS)) : 0;
    }
#if !WIDE
    loads_first(from);
#endif
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
        const Index at = first + k * THREADS;
        if (at < total) {
            loaded[k] = __ldg(x + (from[k] * VECTORS + at % VECTORS));
        }
    }
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
        if (first + k * THREADS < total) {
            out[first + k * THREADS] = loaded[k];
        }
    }
}

// 3. Many rows of one vector of less than 16 bytes: a thread has PAIRS pairs of neighbouring ids, each loaded by 16 bytes, because most of what is
// moved are ids: with one id a load, an SM had 32 KiB of them in flight, and an H200 moved 4.24 TB/s in all, and 4.46 in torch.compile.
constexpr int PAIRS = 2, PAIRS_OF_BLOCK = THREADS * PAIRS;
struct alignas(2 * sizeof(VECTOR)) Pair {
    VECTOR of[2];
};
// In 64 bits at any size: of ids in 32 bits, the compiler loads the lower halves alone, 4 bytes a load.
__device__ __forceinline__ unsigned long long id_of(unsigned low, unsigned high) { return static_cast<unsigned long long>(high) << 32 | low; }

extern "C" __global__ void __launch_bounds__(THREADS) gather_pairs(
    const VECTOR* __restrict__ x, const long long* __restrict__ ids, VECTOR* __restrict__ out, Index total) {
    const Index first = (Index)blockIdx.x * PAIRS_OF_BLOCK + threadIdx.x, pairs = total / 2;
    uint4 both[PAIRS];
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        const Index at = first + k * THREADS;
        both[k] = at < pairs ? __ldg(reinterpret_cast<const uint4*>(ids) + at) : uint4{};
    }
    loads_first(both);
    Pair loaded[PAIRS];
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        loaded[k].of[0] = __ldg(x + id_of(both[k].x, both[k].y));
        loaded[k].of[1] = __ldg(x + id_of(both[k].z, both[k].w));
    }
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) {
        const Index at = first + k * THREADS;
        if (at < pairs) {
            reinterpret_cast<Pair*>(out)[at] = loaded[k];
        }
    }
    if (total % 2 > 0 && first == 0) {
        out[total - 1] = __ldg(x + __ldg(ids + (total - 1)));
    }
}
