// CUDA C++ kernels of `rope`. ELEMENT is float, __half or __nv_bfloat16; SIGN is 1 forwards and -1 backwards; arithmetic in fp32.
#include "vec16.cuh"

// Addresses of heads. The heads of a token are numbered consecutively, first those of the queries, then those of the keys.
struct Heads {
    const ELEMENT* q;
    const ELEMENT* k;
    ELEMENT* q_out;
    ELEMENT* k_out;
    long long token;
    int hq, hk, p;

    __device__ __forceinline__ long long offset(int head) const {
        return head < hq ? (token * hq + head) * 2 * p : (token * hk + head - hq) * 2 * p;
    }
    __device__ __forceinline__ const ELEMENT* from(int head) const { return (head < hq ? q : k) + offset(head); }
    __device__ __forceinline__ ELEMENT* to(int head) const { return (head < hq ? q_out : k_out) + offset(head); }
};

#if PAIRS == 0
// 1. One pair a thread, for heads whose halves are not a whole number of 16-byte vectors.
extern "C" __global__ void __launch_bounds__(256) rope_pairs(
    const ELEMENT* q, const ELEMENT* k, const ELEMENT* __restrict__ cos, const ELEMENT* __restrict__ sin, ELEMENT* q_out,
    ELEMENT* k_out, long long t, int hq, int hk, int p) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const int pairs = (hq + hk) * p;
    const long long token = i / pairs;
    if (token >= t) {
        return;
    }
    const int head = (int)(i - token * pairs) / p;
    const int at = (int)(i - token * pairs) % p;
    const Heads heads = {q, k, q_out, k_out, token, hq, hk, p};
    const float c = to_float(cos[token * p + at]), s = SIGN * to_float(sin[token * p + at]);
    const float x = to_float(heads.from(head)[at]), z = to_float(heads.from(head)[p + at]);
    heads.to(head)[at] = from_float<ELEMENT>(x * c - z * s);
    heads.to(head)[p + at] = from_float<ELEMENT>(z * c + x * s);
}
#else
// 2. One 16-byte vector of each half of a head, HEADS_A_THREAD heads a thread, all loaded before the first is rotated. Neighbouring
// threads of a block have neighbouring vectors of a half, so a thread's cosines and sines are the same for all its heads.
// In place each vector is read by the thread that writes it, so the pointers may be the same (no __restrict__).
// No streaming hints: with them an H200 moved 3784 GB/s instead of the 4201 of Triton's plain accesses.
extern "C" __global__ void __launch_bounds__(512) rope_vec16(
    const ELEMENT* q, const ELEMENT* k, const ELEMENT* __restrict__ cos, const ELEMENT* __restrict__ sin, ELEMENT* q_out,
    ELEMENT* k_out, int chunks, int hq, int hk) {
    using W = Vec16<ELEMENT>;
    constexpr int vectors = PAIRS / W::WIDTH;  // a compile-time constant saves three divisions before the first load
    const int abreast = blockDim.x / vectors;  // heads that the block processes at once
    const long long token = blockIdx.x / chunks;
    const int first = (int)(blockIdx.x % chunks) * abreast * HEADS_A_THREAD + threadIdx.x / vectors;
    const int vec = threadIdx.x % vectors;
    if (threadIdx.x >= abreast * vectors) {
        return;
    }
    const Heads heads = {q, k, q_out, k_out, token, hq, hk, PAIRS};
    W x[HEADS_A_THREAD], z[HEADS_A_THREAD];
#pragma unroll
    for (int i = 0; i < HEADS_A_THREAD; ++i) {
        const int head = first + i * abreast;
        if (head < hq + hk) {
            const W* from = reinterpret_cast<const W*>(heads.from(head));
            x[i] = load_vec16(from + vec);
            z[i] = load_vec16(from + vectors + vec);
        }
    }
    const W c = load_vec16(reinterpret_cast<const W*>(cos + token * PAIRS) + vec);
    const W s = load_vec16(reinterpret_cast<const W*>(sin + token * PAIRS) + vec);
#pragma unroll
    for (int i = 0; i < HEADS_A_THREAD; ++i) {
        const int head = first + i * abreast;
        if (head < hq + hk) {
            W left, right;
#pragma unroll
            for (int e = 0; e < W::WIDTH; ++e) {
                const float a = to_float(x[i].e[e]), b = to_float(z[i].e[e]);
                const float cosine = to_float(c.e[e]), sine = SIGN * to_float(s.e[e]);
                left.e[e] = from_float<ELEMENT>(a * cosine - b * sine);
                right.e[e] = from_float<ELEMENT>(b * cosine + a * sine);
            }
            W* to = reinterpret_cast<W*>(heads.to(head));
            store_vec16(to + vec, left);
            store_vec16(to + vectors + vec, right);
        }
    }
}
#endif
