// CUDA C++ kernels of `scale`. ELEMENT is float, __half or __nv_bfloat16; products are computed in fp32 and rounded once.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "one_element.cuh"

__device__ __forceinline__ ELEMENT scaled(ELEMENT x, float s) {
    return static_cast<ELEMENT>(static_cast<float>(x) * s);
}

// 1. One element a thread, as published: neighbouring threads process neighbouring elements.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) scale_scalar(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, INDEX last, float s) {
    const INDEX i = element_of_thread(last);
    out[i] = scaled(x[i], s);
}

constexpr int WIDTH = 16 / sizeof(ELEMENT);

union Vec16 {
    uint4 bits;
    ELEMENT e[WIDTH];
    __device__ __forceinline__ Vec16() {}
};

__device__ __forceinline__ uint4 scaled(uint4 bits, float s) {
    Vec16 vec;
    vec.bits = bits;
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
        vec.e[k] = scaled(vec.e[k], s);
    }
    return vec.bits;
}

// The elements after the last whole 16-byte vector, by the first threads of the grid.
__device__ __forceinline__ void scale_tail(const ELEMENT* x, ELEMENT* out, long long n, float s) {
    const long long i = n / WIDTH * WIDTH + (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = scaled(x[i], s);
    }
}

// 2. 16 bytes a thread. Pointers are 16-byte aligned (the bind checks).
extern "C" __global__ void __launch_bounds__(256) scale_vec16(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, float s) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / WIDTH) {
        reinterpret_cast<uint4*>(out)[i] = scaled(reinterpret_cast<const uint4*>(x)[i], s);
    }
    scale_tail(x, out, n, s);
}

// 3. VECTORS 16-byte vectors a thread, all loaded before the first is used. A block of THREADS threads processes VECTORS x THREADS
// adjacent vectors. STREAMING loads mark their lines as the first that L2 evicts, so that the output stays in L2 as long as all
// of it fits (see kernels/vec16.py).
#ifndef VECTORS
#define VECTORS 1
#define THREADS 256
#define STREAMING 1
#endif
extern "C" __global__ void __launch_bounds__(THREADS) scale_vectors(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, float s) {
    const long long count = n / WIDTH;
    const long long first = (long long)blockIdx.x * (THREADS * VECTORS) + threadIdx.x;
    const uint4* from = reinterpret_cast<const uint4*>(x);
    uint4* to = reinterpret_cast<uint4*>(out);
    uint4 vectors[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        const long long i = first + (long long)k * THREADS;
        if (i < count) {
            vectors[k] = STREAMING ? __ldcs(from + i) : from[i];
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        const long long i = first + (long long)k * THREADS;
        if (i < count) {
            to[i] = scaled(vectors[k], s);
        }
    }
    scale_tail(x, out, n, s);
}
