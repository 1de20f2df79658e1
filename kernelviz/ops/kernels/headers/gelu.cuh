// gelu(x) = max(x, 0) - a P(-a), a = |x|, with P the normal distribution. The formula is exact, and P(-a) = 2^Q(a) with Q nearly a
// parabola. Q is computed as the polynomial of that degree nearest to log2 P(-a) on 0 <= a <= 6, by weighted least squares with
// weights driven to equal shares of the error that an op's bound allows; each op says which degree its bound needs. Beyond 6,
// 2^Q stays below 2^-29.
#pragma once
#include "vec16.cuh"

// a = |x|, kept below 12 (up to there the errors were checked), since infinities would give inf * 0.
__device__ __forceinline__ float gelu_magnitude(float x) {
    float a;
    asm("{.reg .f32 t; abs.f32 t, %1; min.f32 %0, t, 0f41400000;}" : "=f"(a) : "f"(x));
    return a;
}

// Q(a)
template <int DEGREE> __device__ __forceinline__ float gelu_exponent(float a) {
    static_assert(DEGREE == 4 || DEGREE == 5 || DEGREE == 6 || DEGREE == 8, "there are coefficients for these degrees only");
    float q;
    if constexpr (DEGREE == 8) {
        q = -2.7709616e-06f;
        q = fmaf(q, a, 3.8608167e-05f);
        q = fmaf(q, a, -1.8249029e-04f);
        q = fmaf(q, a, -1.4600168e-04f);
        q = fmaf(q, a, 7.0756334e-03f);
        q = fmaf(q, a, -5.2505132e-02f);
        q = fmaf(q, a, -4.5920488e-01f);
        q = fmaf(q, a, -1.1511058f);
        q = fmaf(q, a, -1.0f);
    } else if constexpr (DEGREE == 6) {
        q = 3.1882464e-05f;
        q = fmaf(q, a, -7.5515453e-04f);
        q = fmaf(q, a, 8.0197575e-03f);
        q = fmaf(q, a, -5.3288851e-02f);
        q = fmaf(q, a, -4.5888928e-01f);
        q = fmaf(q, a, -1.1511536f);
        q = fmaf(q, a, -0.9999988f);
    } else if constexpr (DEGREE == 5) {
        q = -4.3167317e-04f;
        q = fmaf(q, a, 6.8351761e-03f);
        q = fmaf(q, a, -5.1357877e-02f);
        q = fmaf(q, a, -4.6030346e-01f);
        q = fmaf(q, a, -1.1507418f);
        q = fmaf(q, a, -1.0000229f);
    } else {
        q = 3.2390072e-03f;
        q = fmaf(q, a, -4.1494765e-02f);
        q = fmaf(q, a, -4.7081777e-01f);
        q = fmaf(q, a, -1.1465805f);
        q = fmaf(q, a, -1.0003574f);
    }
    return q;
}

template <int DEGREE> __device__ __forceinline__ float gelu_polynomial(float x) {
    const float a = gelu_magnitude(x);
    float positive;
    // NaN is handed on, unlike by fmaxf.
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(positive) : "f"(x));
    return fmaf(-a, exp2_fast(gelu_exponent<DEGREE>(a)), positive);
}
