// CUDA C++ kernels of `copy`. ELEMENT is float, __half or __nv_bfloat16; none of them is converted, so bits stay as they are.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "one_element.cuh"

// 1. One element a thread: neighbouring threads take neighbouring elements, so a warp's 32 loads become whole lines.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) copy_scalar(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, INDEX last) {
    const INDEX i = element_of_thread(last);
    out[i] = x[i];
}

constexpr int WIDTH = 16 / sizeof(ELEMENT);

// The elements behind the last whole 16-byte vector, by the first threads of the grid.
__device__ __forceinline__ void copy_tail(const ELEMENT* x, ELEMENT* out, long long n) {
    const long long i = n / WIDTH * WIDTH + (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = x[i];
    }
}

// 2. 16 bytes a thread. Pointers are 16-byte aligned (the bind function checks it).
extern "C" __global__ void __launch_bounds__(256) copy_vec16(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / WIDTH) {
        reinterpret_cast<uint4*>(out)[i] = reinterpret_cast<const uint4*>(x)[i];
    }
    copy_tail(x, out, n);
}

// 3. VECTORS 16-byte vectors a thread, all loaded
// before the first is stored. A block of THREADS takes VECTORS x THREADS adjacent vectors. STREAMING loads
// tell the L2 to evict their lines first: what is written then stays in the L2, as long as all of it fits (see vec16.py).
#ifndef VECTORS
#define VECTORS 1
#define THREADS 256
#define STREAMING 1
#endif
extern "C" __global__ void __launch_bounds__(THREADS) copy_vectors(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n) {
    const long long vectors = n / WIDTH;
    const long long first = (long long)blockIdx.x * (THREADS * VECTORS) + threadIdx.x;
    const uint4* from = reinterpret_cast<const uint4*>(x);
    uint4* to = reinterpret_cast<uint4*>(out);
    uint4 loaded[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        const long long i = first + (long long)k * THREADS;
        if (i < vectors) {
            loaded[k] = STREAMING ? __ldcs(from + i) : from[i];
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        const long long i = first + (long long)k * THREADS;
        if (i < vectors) {
            to[i] = loaded[k];
        }
    }
    copy_tail(x, out, n);
}
