// CUDA C++ kernel of `rope` for halves of heads that are no whole number of 8-byte vectors. ELEMENT is float, __half or __nv_bfloat16; SIGN is 1
// forwards and -1 backwards; arithmetic in fp32. Sizes are constants of the compilation, so that an index is divided by multiplication.
#include "access_bits.cuh"
#include "loads_first.cuh"
#include "vec16.cuh"

// HQ and HK heads of PAIRS pairs a token. TOKENS of a block, whose queries and keys are whole 16-byte vectors each.
#ifndef PAIRS
#define SIGN 1
#define HQ 1
#define HK 1
#define PAIRS 1
#define TOKENS 8
#endif
constexpr int THREADS = 256, WIDTH = 16 / sizeof(ELEMENT), TABLE = TOKENS * PAIRS;
constexpr int TABLE_EACH = (TABLE + THREADS - 1) / THREADS;
using Bits = BitsOf<sizeof(ELEMENT)>::Type;  // of one element
__device__ __forceinline__ const Bits* bits_of(const ELEMENT* elements) { return reinterpret_cast<const Bits*>(elements); }
__device__ __forceinline__ float number(const Bits& bits) { return to_float(reinterpret_cast<const ELEMENT&>(bits)); }

// COUNT elements that a block reads and writes in 16-byte vectors; of the last block, there are only the first `count`.
template <int COUNT> struct Chunk {
    static_assert(COUNT % WIDTH == 0);
    static constexpr int EACH = (COUNT / WIDTH + THREADS - 1) / THREADS;
    uint4 bits[EACH];
    Bits after;

    // In place, the kernel also writes what it reads, so not ld.global.nc.
    __device__ __forceinline__ void load(const ELEMENT* from, int count) {
        const int whole = count / WIDTH, last = whole * WIDTH + (int)threadIdx.x;
#pragma unroll
        for (int v = 0; v < EACH; ++v) {
            const int at = v * THREADS + (int)threadIdx.x;
            bits[v] = at < whole ? reinterpret_cast<const uint4*>(from)[at] : uint4{};
        }
        after = last < count ? bits_of(from)[last] : Bits{};
    }
    __device__ __forceinline__ void stage(ELEMENT* staged, int count) const {
        const int whole = count / WIDTH, last = whole * WIDTH + (int)threadIdx.x;
#pragma unroll
        for (int v = 0; v < EACH; ++v) {
            const int at = v * THREADS + (int)threadIdx.x;
            if (at < whole) {
                reinterpret_cast<uint4*>(staged)[at] = bits[v];
            }
        }
        if (last < count) {
            staged[last] = reinterpret_cast<const ELEMENT&>(after);
        }
    }
};
template <int COUNT> __device__ __forceinline__ void store(ELEMENT* to, const ELEMENT* staged, int count) {
    const int whole = count / WIDTH, last = whole * WIDTH + (int)threadIdx.x;
#pragma unroll
    for (int v = 0; v < Chunk<COUNT>::EACH; ++v) {
        const int at = v * THREADS + (int)threadIdx.x;
        if (at < whole) {
            reinterpret_cast<uint4*>(to)[at] = reinterpret_cast<const uint4*>(staged)[at];
        }
    }
    if (last < count) {
        to[last] = staged[last];
    }
}

// A pair a thread: neighbouring threads have neighbouring elements of both halves, which lie in different banks.
template <int HEADS> __device__ __forceinline__ void rotate(ELEMENT* staged, const float* cosines, const float* sines, unsigned tokens) {
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < tokens * (HEADS * PAIRS); i += THREADS) {
        const unsigned head = i / PAIRS, token = i / (HEADS * PAIRS), angle = token * PAIRS + i - head * PAIRS;
        ELEMENT* left = staged + (i + head * PAIRS);
        ELEMENT* right = left + PAIRS;
        const float a = to_float(*left), b = to_float(*right), cosine = cosines[angle], sine = sines[angle];
        *left = from_float<ELEMENT>(a * cosine - b * sine);
        *right = from_float<ELEMENT>(b * cosine + a * sine);
    }
}

// A block reads the heads of TOKENS tokens as one piece, rotates them in shared memory, and writes them as one piece, so that memory is accessed by
// 16 bytes whatever the length of a half. An H200 moved 2.1 TB/s with a 2-byte element of each half a thread, 3.5 with 4 bytes, and 4.2 with 8.
// Without a smallest number of blocks in the launch bounds, ptxas uses 32 registers and stores the first vector before it loads the last.
extern "C" __global__ void __launch_bounds__(THREADS, 4) rope_staged(
    const ELEMENT* q, const ELEMENT* k, const ELEMENT* __restrict__ cos, const ELEMENT* __restrict__ sin, ELEMENT* q_out,
    ELEMENT* k_out, long long tokens) {
    constexpr int OF_Q = HQ * 2 * PAIRS, OF_K = HK * 2 * PAIRS;
    __shared__ __align__(16) ELEMENT staged_q[TOKENS * OF_Q];
    __shared__ __align__(16) ELEMENT staged_k[TOKENS * OF_K];
    __shared__ float cosines[TABLE];
    __shared__ float sines[TABLE];
    const long long first = (long long)blockIdx.x * TOKENS;
    const int here = tokens - first < TOKENS ? (int)(tokens - first) : TOKENS;
    Chunk<TOKENS * OF_Q> of_q;
    Chunk<TOKENS * OF_K> of_k;
    Bits cosine[TABLE_EACH], sine[TABLE_EACH];
    of_q.load(q + first * OF_Q, here * OF_Q);
    of_k.load(k + first * OF_K, here * OF_K);
#pragma unroll
    for (int e = 0; e < TABLE_EACH; ++e) {
        const int at = e * THREADS + (int)threadIdx.x;
        cosine[e] = at < here * PAIRS ? __ldg(bits_of(cos + first * PAIRS) + at) : Bits{};
        sine[e] = at < here * PAIRS ? __ldg(bits_of(sin + first * PAIRS) + at) : Bits{};
    }
    loads_first(of_q.bits);
    loads_first(of_k.bits);
    loads_first(of_q.after);
    loads_first(of_k.after);
    loads_first(cosine);
    loads_first(sine);
    of_q.stage(staged_q, here * OF_Q);
    of_k.stage(staged_k, here * OF_K);
#pragma unroll
    for (int e = 0; e < TABLE_EACH; ++e) {
        const int at = e * THREADS + (int)threadIdx.x;
        if (at < TABLE) {
            cosines[at] = number(cosine[e]);
            sines[at] = SIGN * number(sine[e]);
        }
    }
    __syncthreads();
    rotate<HQ>(staged_q, cosines, sines, here);
    rotate<HK>(staged_k, cosines, sines, here);
    __syncthreads();
    store<TOKENS * OF_Q>(q_out + first * OF_Q, staged_q, here * OF_Q);
    store<TOKENS * OF_K>(k_out + first * OF_K, staged_k, here * OF_K);
}
