// CUDA C++ kernels of `add`, `mul` and `div`. ELEMENT is float, __half or __nv_bfloat16, COMBINE one of plus, times and over.
// Everything is computed in fp32 and rounded once.
#include "one_element.cuh"
#include "vec16.cuh"

template <typename T> __device__ __forceinline__ float plus(float a, float b) { return a + b; }
template <typename T> __device__ __forceinline__ float times(float a, float b) { return a * b; }
// A quotient within 2 ulp of fp32, over its whole range (PTX ISA, div.full): 8,000 times finer than what fp16 can hold.
template <typename T> __device__ __forceinline__ float over(float a, float b) {
    float q;
    asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(a), "f"(b));
    return q;
}
// Correctly rounded, as IEEE 754 defines it.
template <> __device__ __forceinline__ float over<float>(float a, float b) { return a / b; }

__device__ __forceinline__ ELEMENT combined(ELEMENT a, ELEMENT b) {
    return from_float<ELEMENT>(COMBINE<ELEMENT>(to_float(a), to_float(b)));
}

// 1. One element a thread: neighbouring threads take neighbouring elements, so a warp's 32 loads become whole lines.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) arithmetic_scalar(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ y, ELEMENT* __restrict__ out, INDEX last) {
    const INDEX i = element_of_thread(last);
    out[i] = combined(x[i], y[i]);
}

using Vector = Vec16<ELEMENT>;

__device__ __forceinline__ Vector combined(const Vector& a, const Vector& b) {
    Vector result;
#pragma unroll
    for (int k = 0; k < Vector::WIDTH; ++k) {
        result.e[k] = combined(a.e[k], b.e[k]);
    }
    return result;
}

// The elements behind the last whole 16-byte vector, by the first threads of the grid.
__device__ __forceinline__ void combine_tail(const ELEMENT* x, const ELEMENT* y, ELEMENT* out, long long n) {
    const long long i = n / Vector::WIDTH * Vector::WIDTH + (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = combined(x[i], y[i]);
    }
}

// 2. 16 bytes a load: a quarter (an eighth in half precision) of the memory instructions for the same bytes.
// Pointers are 16-byte aligned (the bind function checks it).
extern "C" __global__ void __launch_bounds__(256) arithmetic_vec16(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ y, ELEMENT* __restrict__ out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / Vector::WIDTH) {
        const Vector a = load_vec16(reinterpret_cast<const Vector*>(x) + i);
        const Vector b = load_vec16(reinterpret_cast<const Vector*>(y) + i);
        store_vec16(reinterpret_cast<Vector*>(out) + i, combined(a, b));
    }
    combine_tail(x, y, out, n);
}

// 3. VECTORS vectors of each input a thread, all loaded
// before the first is used. A block of THREADS takes VECTORS x THREADS adjacent vectors. STREAMING loads
// tell the L2 to evict their lines first: what is written then stays in the L2, as long as all of it fits (see vec16.py).
#ifndef VECTORS
#define VECTORS 1
#define THREADS 256
#define STREAMING 1
#endif
extern "C" __global__ void __launch_bounds__(THREADS) arithmetic_vectors(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ y, ELEMENT* __restrict__ out, long long n) {
    const long long vectors = n / Vector::WIDTH;
    const long long first = (long long)blockIdx.x * (THREADS * VECTORS) + threadIdx.x;
    const Vector* from_x = reinterpret_cast<const Vector*>(x);
    const Vector* from_y = reinterpret_cast<const Vector*>(y);
    Vector a[VECTORS], b[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        const long long i = first + (long long)k * THREADS;
        if (i < vectors) {
            a[k] = STREAMING ? load_streaming(from_x + i) : load_vec16(from_x + i);
            b[k] = STREAMING ? load_streaming(from_y + i) : load_vec16(from_y + i);
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        const long long i = first + (long long)k * THREADS;
        if (i < vectors) {
            store_vec16(reinterpret_cast<Vector*>(out) + i, combined(a[k], b[k]));
        }
    }
    combine_tail(x, y, out, n);
}
