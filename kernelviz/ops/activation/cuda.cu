// CUDA C++ kernels of the activations. ELEMENT is float, __half or __nv_bfloat16; APPLY one of the functions below, in fp32.
#include "conversions.cuh"
#include "gelu.cuh"
#include "one_element.cuh"

// 1/v by one instruction of the special-function unit; subnormal results are flushed to zero.
__device__ __forceinline__ float reciprocal(float v) {
    float out;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(v));
    return out;
}
// max(v, 0) that keeps NaN, which fmaxf does not.
__device__ __forceinline__ float positive(float v) {
#if __CUDA_ARCH__ >= 800
    float out;
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(out) : "f"(v));
    return out;
#else
    return v < 0.0f ? 0.0f : v;
#endif
}

__device__ __forceinline__ float relu(float x) { return positive(x); }

// As in torch: accurate expf and erff, division rounded to nearest.
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }
__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }

// A product, a power of two, a sum and a reciprocal, where the accurate ones take about 20 instructions.
__device__ __forceinline__ float sigmoid_fast(float x) {
    return reciprocal(1.0f + exp2_fast(x * -1.4426950408889634f));
}
__device__ __forceinline__ float silu_fast(float x) { return x * sigmoid_fast(x); }

// The polynomial of degree 6 errs by a fifth of 0.008 u |y| + 2^-24 |x| in fp16, the one of degree 8 by an eighth in fp32.
__device__ __forceinline__ float gelu_fast(float x) {
    const float a = gelu_magnitude(x);
    const float q = gelu_exponent<sizeof(ELEMENT) == 4 ? 8 : 6>(a);
    return fmaf(-a, exp2_fast(q), positive(x));
}

// 1. One element a thread.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) activation_scalar(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, INDEX last) {
    const INDEX i = element_of_thread(last);
    out[i] = from_float<ELEMENT>(APPLY(to_float(x[i])));
}

// 2. One 16-byte vector a thread, in small blocks: 2048 threads an SM have 32 KiB in flight. Of gelu (2^28 in bf16, an H200) that
// reaches 4332 GB/s; two vectors a thread 4309, four 4158, blocks of 512 threads 4156, loads and stores marked as streaming 4228.
extern "C" __global__ void __launch_bounds__(128) activation_vec16(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n) {
    constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;
    const long long vectors = n / WIDTH;
    const long long i = (long long)blockIdx.x * 128 + threadIdx.x;
    if (i < vectors) {
        float v[WIDTH];
        widen(load_vec16(reinterpret_cast<const Vec16<ELEMENT>*>(x) + i), v);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            v[j] = APPLY(v[j]);
        }
        store_vec16(reinterpret_cast<Vec16<ELEMENT>*>(out) + i, narrow<ELEMENT>(v));
    } else if (i - vectors < n % WIDTH) {
        // The elements after the last whole vector are processed by the next threads, one each.
        const long long at = vectors * WIDTH + (i - vectors);
        out[at] = from_float<ELEMENT>(APPLY(to_float(x[at])));
    }
}
