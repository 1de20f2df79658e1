// Maximum and Σ exp(x - maximum) of a row as one value, so that one reduction (one barrier) computes both: softmax and cross-entropy
// begin with it.
#pragma once
#include "conversions.cuh"
#include "rows.cuh"

constexpr float LOG2_E = 1.4426950408889634f;
// The lowest finite fp32: a maximum that starts at -inf would give -inf - -inf = NaN on a masked entry.
constexpr float LOWEST = -3.4028234663852886e38f;

// exp(v), v <= 0. The factor is applied to the difference: folded into a multiply-add it would lose the difference of two
// large logits.
__device__ __forceinline__ float exponential(float v) { return exp2_fast(v * LOG2_E); }

template <typename T> __device__ __forceinline__ T minus_infinity() { return from_float<T>(-INFINITE); }

struct Exponentials {
    float top, sum;  // Σ exp(x - top)
};

struct Merge {
    // One exponential, not two: of the two sums, the one of the smaller maximum is scaled by exp(-|difference|).
    __device__ __forceinline__ Exponentials operator()(Exponentials a, Exponentials b) const {
        const float rise = b.top - a.top, e = exponential(-fabsf(rise));
        return {fmaxf(a.top, b.top), rise > 0 ? a.sum * e + b.sum : a.sum + b.sum * e};
    }
};

// The largest element of some vectors; NaN is ignored, since it enters the sum. 16-bit elements are compared two at a time: half the
// instructions.
template <typename T, int VECTORS> __device__ __forceinline__ float top_of(const Vec16<T> (&w)[VECTORS]) {
    if constexpr (sizeof(T) == 4) {
        float top = LOWEST;
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            top = fmaxf(top, fmaxf(fmaxf(w[k].e[0], w[k].e[1]), fmaxf(w[k].e[2], w[k].e[3])));
        }
        return top;
    } else {
        using Pair = typename PackedPair<T>::type;
        Pair top = reinterpret_cast<const Pair*>(&w[0])[0];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                top = __hmax2(top, reinterpret_cast<const Pair*>(&w[k])[i]);
            }
        }
        const float2 both = widened(top);
        return fmaxf(LOWEST, fmaxf(both.x, both.y));
    }
}

// Exponentials of the elements of some vectors. `each(k, e, exp(x - top))` gets every term, for kernels that keep them.
template <typename T, int VECTORS, typename Each>
__device__ __forceinline__ Exponentials exponentials_of(const Vec16<T> (&w)[VECTORS], Each each) {
    const float top = top_of(w);
    float sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        float v[Vec16<T>::WIDTH];
        widen(w[k], v);
#pragma unroll
        for (int e = 0; e < Vec16<T>::WIDTH; ++e) {
            const float term = exponential(v[e] - top);
            sum[e % 2] += term;
            each(k, e, term);
        }
    }
    return {top, sum[0] + sum[1]};
}

// Add the vectors that it is called with to a sum. (NVRTC takes a generic lambda for host code.)
struct Accumulate {
    Exponentials& into;
    template <typename T, int VECTORS> __device__ __forceinline__ void operator()(const Vec16<T> (&w)[VECTORS]) const {
        into = Merge()(into, exponentials_of(w, [](int, int, float) {}));
    }
};
