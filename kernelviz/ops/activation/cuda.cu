// CUDA C++ kernels of the activations. ELEMENT is float, __half or __nv_bfloat16; APPLY one of the functions below, in fp32.
#include "lanes.cuh"

// 2^v and 1/v by one instruction of the special-function unit each; subnormal results are flushed to zero.
__device__ __forceinline__ float power_of_two(float v) {
    float out;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(v));
    return out;
}
__device__ __forceinline__ float reciprocal(float v) {
    float out;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(v));
    return out;
}
// max(v, 0) that hands on NaN, which fmaxf does not.
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

// As torch writes them: accurate expf and erff, division rounded to nearest.
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ __forceinline__ float silu(float x) { return x / (1.0f + expf(-x)); }
__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }

// A product, a power of two, a sum and a reciprocal, where the accurate ones take about 20 instructions.
__device__ __forceinline__ float sigmoid_fast(float x) {
    return reciprocal(1.0f + power_of_two(x * -1.4426950408889634f));
}
__device__ __forceinline__ float silu_fast(float x) { return x * sigmoid_fast(x); }

// gelu(x) = max(x, 0) - a P(-a) with a = |x| and P the normal distribution: exact, and P(-a) = 2^Q(a) with Q nearly a parabola.
// Q is the polynomial nearest to log2 P(-a) on 0 <= a <= 6 (weighted least squares, weights driven to equal error in units of
// what the format allows): degree 6 errs by a fifth of 0.008 u |y| + 2^-24 |x| in fp16, degree 8 by an eighth in fp32. Beyond,
// both fall fast enough that 2^Q stays below 2^-29; a stays below 12, or the infinities would give inf * 0.
__device__ __forceinline__ float gelu_fast(float x) {
    float a, q;
    asm("{.reg .f32 t; abs.f32 t, %1; min.f32 %0, t, 0f41400000;}" : "=f"(a) : "f"(x));
    if constexpr (sizeof(ELEMENT) == 4) {
        q = -2.7709616e-06f;
        q = fmaf(q, a, 3.8608167e-05f);
        q = fmaf(q, a, -1.8249029e-04f);
        q = fmaf(q, a, -1.4600168e-04f);
        q = fmaf(q, a, 7.0756334e-03f);
        q = fmaf(q, a, -5.2505132e-02f);
        q = fmaf(q, a, -4.5920488e-01f);
        q = fmaf(q, a, -1.1511058f);
        q = fmaf(q, a, -1.0f);
    } else {
        q = 3.1882464e-05f;
        q = fmaf(q, a, -7.5515453e-04f);
        q = fmaf(q, a, 8.0197575e-03f);
        q = fmaf(q, a, -5.3288851e-02f);
        q = fmaf(q, a, -4.5888928e-01f);
        q = fmaf(q, a, -1.1511536f);
        q = fmaf(q, a, -0.9999988f);
    }
    return fmaf(-a, power_of_two(q), positive(x));
}

// 1. One element a thread.
extern "C" __global__ void __launch_bounds__(256) activation_scalar(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = from_float<ELEMENT>(APPLY(to_float(x[i])));
    }
}

// 2. One 16-byte word a thread, in small blocks: 2048 threads an SM have 32 KiB on their way. Of gelu (2^28 in bf16, an H200) that
// reaches 4332 GB/s; two words a thread 4309, four 4158, blocks of 512 threads 4156, loads and stores marked as streaming 4228.
extern "C" __global__ void __launch_bounds__(128) activation_words(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n) {
    constexpr int WIDTH = Word<ELEMENT>::WIDTH;
    const long long words = n / WIDTH;
    const long long i = (long long)blockIdx.x * 128 + threadIdx.x;
    if (i < words) {
        float v[WIDTH];
        widen(load_word(reinterpret_cast<const Word<ELEMENT>*>(x) + i), v);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            v[j] = APPLY(v[j]);
        }
        store_word(reinterpret_cast<Word<ELEMENT>*>(out) + i, narrow<ELEMENT>(v));
    } else if (i - words < n % WIDTH) {
        // Behind the last whole word, the next threads take an element each.
        const long long at = words * WIDTH + (i - words);
        out[at] = from_float<ELEMENT>(APPLY(to_float(x[at])));
    }
}
