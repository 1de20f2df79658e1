// The chain relu(x s + b), k steps, for rows of any length n: x is walked as one vector, so that all of its accesses are of 16 bytes and aligned.
// ELEMENT is float, __half or __nv_bfloat16. The s and b of a step are rows of n elements. ONE_STEP: k is 1, and the kernel half as long.
// INDEX: int where indexes have 31 bits, else long long.
#include "conversions.cuh"
#include "loads_first.cuh"
#include "relu.cuh"
#include "two_vectors.cuh"

#ifndef ONE_STEP
#define ONE_STEP 0
#define INDEX long long
#endif
using Index = INDEX;
using V = Vec16<ELEMENT>;
constexpr int WIDTH = V::WIDTH;

// The WIDTH elements from index `first` on (0 <= first < WIDTH) of two adjacent vectors.
__device__ __forceinline__ V spliced(const V& low, const V& high, int first) {
    const uint4 bits = bytes_of_two_vectors(
        reinterpret_cast<const uint4&>(low), reinterpret_cast<const uint4&>(high), first * (int)sizeof(ELEMENT));
    return reinterpret_cast<const V&>(bits);
}

// The s and b of WIDTH elements of x.
struct Factors {
    V scales, shifts;
};

// Those of a step for elements of which the first is in column `column`: elements of its rows of s and b, from their begin again where x
// goes on with the next row. `count`: elements of all rows. All loads are in flight at once: where b was loaded after s had arrived, a
// thread waited for memory twice.
__device__ __forceinline__ Factors factors_of(
    const ELEMENT* __restrict__ s, const ELEMENT* __restrict__ b, Index row, int column, int n, Index count) {
    const Index at = row * n + column;
    const int first = (int)(at % WIDTH), next = first ? 1 : 0;
    Factors out;
    if (column + WIDTH <= n && at - first + (1 + next) * WIDTH <= count) {
        const V* of_s = reinterpret_cast<const V*>(s) + at / WIDTH;
        const V* of_b = reinterpret_cast<const V*>(b) + at / WIDTH;
        V low[2] = {load_vec16(of_s), load_vec16(of_b)}, high[2] = {load_vec16(of_s + next), load_vec16(of_b + next)};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            loads_first(reinterpret_cast<uint4&>(low[i]));
            loads_first(reinterpret_cast<uint4&>(high[i]));
        }
        out.scales = spliced(low[0], high[0], first);
        out.shifts = spliced(low[1], high[1], first);
        return out;
    }
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        out.scales.e[i] = s[row * n + column];
        out.shifts.e[i] = b[row * n + column];
        column = column + 1 == n ? 0 : column + 1;
    }
    return out;
}

// Remainder of 0 <= at < 2^31 by n > 1 (n = 1: reciprocal 0), without a division: its quotient is the product with the reciprocal
// floor(2^(31 + shift) / n) + 1, 2^(shift - 1) < n <= 2^shift, over 2^(31 + shift).
__device__ __forceinline__ int remainder_of(int at, int n, unsigned reciprocal, int shift) {
    return reciprocal ? at - (int)(__umulhi(at, reciprocal) >> (shift - 1)) * n : 0;
}

// A thread processes vectors of x that are `stride` vectors apart. That is a multiple of n elements, so they share s and b. Threads
// from `stride` on process the elements after the last whole vector. No __restrict__ on x and out, because they may be the same.
extern "C" __global__ void __launch_bounds__(256) chain_flat(
    const ELEMENT* x, const ELEMENT* __restrict__ s, const ELEMENT* __restrict__ b, ELEMENT* out, Index count,
    Index stride, int n, int first_step, int k, unsigned reciprocal, int shift) {
    const Index j = (Index)blockIdx.x * 256 + threadIdx.x, whole = count / WIDTH;
    const Index end = (Index)(first_step + k) * n;
    // A division of 64 bits takes several times as long.
    auto in_row = [&](Index at) {
        return sizeof(Index) > 4 && (long long)at >> 31 ? (int)(at % n) : remainder_of((int)at, n, reciprocal, shift);
    };
    if (j >= stride) {
        const Index i = whole * WIDTH + (j - stride);
        if (i < count) {
            float v = to_float(x[i]);
            for (Index at = (Index)first_step * n + in_row(i); at < end; at += n) {
                v = relu(fmaf(v, to_float(s[at]), to_float(b[at])));
            }
            out[i] = from_float<ELEMENT>(v);
        }
        return;
    }
    V vectors[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (j + r * stride < whole) {
            vectors[r] = load_vec16(reinterpret_cast<const V*>(x) + j + r * stride);
        }
    }
    const Index at = j * WIDTH;
    const int column = in_row(at);
    Factors factors = factors_of(s, b, first_step, column, n, end);
#if PACKED
    using Pair = typename PackedPair<ELEMENT>::type;
#else
    float v[ROWS][WIDTH];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        widen(vectors[r], v[r]);
    }
#endif
    for (int step = 0; step < (ONE_STEP ? 1 : k); ++step) {
#if PACKED
        const V scale = factors.scales, shift = factors.shifts;
#else
        float scale[WIDTH], shift[WIDTH];
        widen(factors.scales, scale);
        widen(factors.shifts, shift);
#endif
        if (!ONE_STEP && step + 1 < k) {  // prefetch those of the next step
            factors = factors_of(s, b, first_step + step + 1, column, n, end);
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
#if PACKED
            // Two elements an instruction: product, sum and relu are one HFMA2.RELU, rounded to 16 bits at the end of each step.
            Pair* pairs = reinterpret_cast<Pair*>(&vectors[r]);
#pragma unroll
            for (int i = 0; i < WIDTH / 2; ++i) {
                pairs[i] = __hfma2_relu(
                    pairs[i], reinterpret_cast<const Pair*>(&scale)[i], reinterpret_cast<const Pair*>(&shift)[i]);
            }
#else
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) {
                v[r][i] = relu(fmaf(v[r][i], scale[i], shift[i]));
            }
#endif
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (j + r * stride < whole) {
#if PACKED
            const V result = vectors[r];
#else
            const V result = narrow<ELEMENT>(v[r]);
#endif
            store_vec16(reinterpret_cast<V*>(out) + j + r * stride, result);
        }
    }
}
