// Maximum and Σ exp(x - maximum) of a row as one value, so that one reduction (one barrier) finds both: what softmax and
// cross-entropy begin with.
#pragma once
#include "lanes.cuh"
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

struct Join {
    // One power, not two: of the two sums, the one of the smaller maximum is scaled by exp(-|difference|).
    __device__ __forceinline__ Exponentials operator()(Exponentials a, Exponentials b) const {
        const float rise = b.top - a.top, e = exponential(-fabsf(rise));
        return {fmaxf(a.top, b.top), rise > 0 ? a.sum * e + b.sum : a.sum + b.sum * e};
    }
};

// The largest element of some words; NaN is passed over, since it enters the sum. Two halves at once: half the instructions.
template <typename T, int WORDS> __device__ __forceinline__ float top_of(const Word<T> (&w)[WORDS]) {
    if constexpr (sizeof(T) == 4) {
        float top = LOWEST;
#pragma unroll
        for (int k = 0; k < WORDS; ++k) {
            top = fmaxf(top, fmaxf(fmaxf(w[k].e[0], w[k].e[1]), fmaxf(w[k].e[2], w[k].e[3])));
        }
        return top;
    } else {
        using Pair = typename Two<T>::type;
        Pair top = reinterpret_cast<const Pair*>(&w[0])[0];
#pragma unroll
        for (int k = 0; k < WORDS; ++k) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                top = __hmax2(top, reinterpret_cast<const Pair*>(&w[k])[i]);
            }
        }
        const float2 both = widened(top);
        return fmaxf(LOWEST, fmaxf(both.x, both.y));
    }
}

// Of the elements of some words; `each(k, e, exp(x - top))` sees every term, for kernels that keep them.
template <typename T, int WORDS, typename Each>
__device__ __forceinline__ Exponentials exponentials_of(const Word<T> (&w)[WORDS], Each each) {
    const float top = top_of(w);
    float sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < WORDS; ++k) {
        float v[Word<T>::WIDTH];
        widen(w[k], v);
#pragma unroll
        for (int e = 0; e < Word<T>::WIDTH; ++e) {
            const float term = exponential(v[e] - top);
            sum[e % 2] += term;
            each(k, e, term);
        }
    }
    return {top, sum[0] + sum[1]};
}

// Adds the words that it is given to a sum. (NVRTC takes a generic lambda for host code.)
struct Summing {
    Exponentials& into;
    template <typename T, int WORDS> __device__ __forceinline__ void operator()(const Word<T> (&w)[WORDS]) const {
        into = Join()(into, exponentials_of(w, [](int, int, float) {}));
    }
};

// Words as if the compiler did not know them: else it keeps the fp32 numbers that it has made of them once, in twice the
// registers, until they are needed again.
template <typename T, int WORDS> __device__ __forceinline__ void forget(Word<T> (&w)[WORDS]) {
#pragma unroll
    for (int k = 0; k < WORDS; ++k) {
        uint4& bits = *reinterpret_cast<uint4*>(&w[k]);
        asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
    }
}
