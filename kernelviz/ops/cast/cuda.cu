// CUDA C++ kernels of `cast_fp16`, `cast_bf16` and `cast_fp8`. FROM is float or __nv_bfloat16, TO is __half, __nv_bfloat16 or Fp8.
#include <cuda_fp8.h>

#include "one_element.cuh"
#include "vec16.cuh"

struct Fp8 {
    __nv_fp8_storage_t bits;
};

// Two numbers at once: one conversion instruction makes both. Rounded to nearest, ties to even.
template <typename T> struct Pair;
template <> struct Pair<__half> {
    __device__ __forceinline__ static void store(__half* to, float a, float b) {
        const __half2 both = __floats2half2_rn(a, b);
        to[0] = both.x;
        to[1] = both.y;
    }
};
template <> struct Pair<__nv_bfloat16> {
    __device__ __forceinline__ static void store(__nv_bfloat16* to, float a, float b) {
        const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
        to[0] = both.x;
        to[1] = both.y;
    }
};
template <> struct Pair<Fp8> {
    __device__ __forceinline__ static void store(Fp8* to, float a, float b) {
        // The instruction saturates: numbers beyond 448 become 448, infinity too.
        const __nv_fp8x2_storage_t both = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
        to[0].bits = (__nv_fp8_storage_t)(both & 0xFF);
        to[1].bits = (__nv_fp8_storage_t)(both >> 8);
    }
};

__device__ __forceinline__ TO converted(FROM v) {
    TO both[2];
    Pair<TO>::store(both, to_float(v), 0.0f);
    return both[0];
}

// 1. One element a thread.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) cast_scalar(
    const FROM* __restrict__ x, TO* __restrict__ out, INDEX last) {
    const INDEX i = element_of_thread(last);
    out[i] = converted(x[i]);
}

constexpr int WIDTH = 16 / sizeof(FROM);

// As many results as a 16-byte vector holds numbers to convert: 8 bytes of fp16 or bf16, 4 or 8 of fp8.
struct alignas(WIDTH * sizeof(TO)) Narrow {
    TO e[WIDTH];
};

__device__ __forceinline__ Narrow converted(const Vec16<FROM>& vector) {
    Narrow result;
#pragma unroll
    for (int k = 0; k < WIDTH; k += 2) {
        Pair<TO>::store(result.e + k, to_float(vector.e[k]), to_float(vector.e[k + 1]));
    }
    return result;
}

// The elements behind the last whole 16-byte vector of the input, by the first threads of the grid.
__device__ __forceinline__ void cast_tail(const FROM* x, TO* out, long long n) {
    const long long i = n / WIDTH * WIDTH + (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = converted(x[i]);
    }
}

// 2. 16 bytes a load, the store as much narrower as the format. Pointers are 16-byte aligned (the bind function checks it).
extern "C" __global__ void __launch_bounds__(256) cast_vec16(
    const FROM* __restrict__ x, TO* __restrict__ out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / WIDTH) {
        reinterpret_cast<Narrow*>(out)[i] = converted(load_vec16(reinterpret_cast<const Vec16<FROM>*>(x) + i));
    }
    cast_tail(x, out, n);
}

// 3. RATIO neighbouring vectors a thread, so that its result fills a store of 16 bytes. A warp's load then takes every
// RATIO-th vector, and the vectors in between come from the L1 with the next load.
constexpr int RATIO = sizeof(FROM) / sizeof(TO);

extern "C" __global__ void __launch_bounds__(256) cast_wide_store(
    const FROM* __restrict__ x, TO* __restrict__ out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / (WIDTH * RATIO)) {
        const Vec16<FROM>* from = reinterpret_cast<const Vec16<FROM>*>(x) + i * RATIO;
        Vec16<FROM> loaded[RATIO];
#pragma unroll
        for (int k = 0; k < RATIO; ++k) {
            loaded[k] = load_vec16(from + k);
        }
        struct alignas(16) Wide {
            Narrow part[RATIO];
        } wide;
#pragma unroll
        for (int k = 0; k < RATIO; ++k) {
            wide.part[k] = converted(loaded[k]);
        }
        reinterpret_cast<uint4*>(out)[i] = *reinterpret_cast<const uint4*>(&wide);
    }
    const long long tail = n / (WIDTH * RATIO) * (WIDTH * RATIO) + i;
    if (tail < n) {
        out[tail] = converted(x[tail]);
    }
}

// 4. VECTORS 16-byte vectors a thread, all loaded
// before the first is converted. A block of THREADS takes VECTORS x THREADS adjacent vectors. STREAMING loads
// tell the L2 to evict their lines first: what is written then stays in the L2, as long as all of it fits (see vec16.py).
#ifndef VECTORS
#define VECTORS 1
#define THREADS 256
#define STREAMING 1
#endif
extern "C" __global__ void __launch_bounds__(THREADS) cast_vectors(
    const FROM* __restrict__ x, TO* __restrict__ out, long long n) {
    const long long vectors = n / WIDTH;
    const long long first = (long long)blockIdx.x * (THREADS * VECTORS) + threadIdx.x;
    const Vec16<FROM>* from = reinterpret_cast<const Vec16<FROM>*>(x);
    Vec16<FROM> loaded[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        const long long i = first + (long long)k * THREADS;
        if (i < vectors) {
            loaded[k] = STREAMING ? load_streaming(from + i) : load_vec16(from + i);
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        const long long i = first + (long long)k * THREADS;
        if (i < vectors) {
            reinterpret_cast<Narrow*>(out)[i] = converted(loaded[k]);
        }
    }
    cast_tail(x, out, n);
}
