// The elements of 16-byte vectors as fp32 numbers and back. 16-bit elements are converted two at a time: one instruction rounds
// two numbers, where the conversion of single elements needs another one that puts the halves together.
#pragma once
#include "vec16.cuh"

__device__ __forceinline__ float2 widened(__half2 pair) { return __half22float2(pair); }
// A bfloat16 is the upper half of an fp32 number: a shift and a mask.
__device__ __forceinline__ float2 widened(__nv_bfloat162 pair) {
    const unsigned bits = *reinterpret_cast<const unsigned*>(&pair);
    return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
}

template <typename T> struct PackedPair;
template <> struct PackedPair<__half> {
    using type = __half2;
    static __device__ __forceinline__ type rounded(float low, float high) { return __floats2half2_rn(low, high); }
};
template <> struct PackedPair<__nv_bfloat16> {
    using type = __nv_bfloat162;
    static __device__ __forceinline__ type rounded(float low, float high) { return __floats2bfloat162_rn(low, high); }
};

template <typename T> __device__ __forceinline__ void widen(const Vec16<T>& vector, float (&out)[Vec16<T>::WIDTH]) {
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int k = 0; k < Vec16<T>::WIDTH; ++k) {
            out[k] = vector.e[k];
        }
    } else {
        const typename PackedPair<T>::type* pairs = reinterpret_cast<const typename PackedPair<T>::type*>(&vector);
#pragma unroll
        for (int k = 0; k < Vec16<T>::WIDTH / 2; ++k) {
            const float2 both = widened(pairs[k]);
            out[2 * k] = both.x;
            out[2 * k + 1] = both.y;
        }
    }
}

// Rounds to nearest, ties to even.
template <typename T> __device__ __forceinline__ Vec16<T> narrow(const float (&in)[Vec16<T>::WIDTH]) {
    Vec16<T> vector;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int k = 0; k < Vec16<T>::WIDTH; ++k) {
            vector.e[k] = in[k];
        }
    } else {
        typename PackedPair<T>::type* pairs = reinterpret_cast<typename PackedPair<T>::type*>(&vector);
#pragma unroll
        for (int k = 0; k < Vec16<T>::WIDTH / 2; ++k) {
            pairs[k] = PackedPair<T>::rounded(in[2 * k], in[2 * k + 1]);
        }
    }
    return vector;
}
