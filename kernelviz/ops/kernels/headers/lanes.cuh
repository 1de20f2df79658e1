// The elements of 16-byte words as fp32 numbers and back. 16-bit elements are converted two at a time: one instruction rounds
// two numbers, where element by element the compiler adds another that puts the halves together.
#pragma once
#include "vectors.cuh"

__device__ __forceinline__ float2 widened(__half2 two) { return __half22float2(two); }
// A bfloat16 is the upper half of an fp32 number: a shift and a mask.
__device__ __forceinline__ float2 widened(__nv_bfloat162 two) {
    const unsigned bits = *reinterpret_cast<const unsigned*>(&two);
    return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
}

template <typename T> struct Two;
template <> struct Two<__half> {
    using type = __half2;
    static __device__ __forceinline__ type rounded(float low, float high) { return __floats2half2_rn(low, high); }
};
template <> struct Two<__nv_bfloat16> {
    using type = __nv_bfloat162;
    static __device__ __forceinline__ type rounded(float low, float high) { return __floats2bfloat162_rn(low, high); }
};

template <typename T> __device__ __forceinline__ void widen(const Word<T>& word, float (&out)[Word<T>::WIDTH]) {
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int k = 0; k < Word<T>::WIDTH; ++k) {
            out[k] = word.e[k];
        }
    } else {
        const typename Two<T>::type* twos = reinterpret_cast<const typename Two<T>::type*>(&word);
#pragma unroll
        for (int k = 0; k < Word<T>::WIDTH / 2; ++k) {
            const float2 two = widened(twos[k]);
            out[2 * k] = two.x;
            out[2 * k + 1] = two.y;
        }
    }
}

// Rounded to nearest, ties to even.
template <typename T> __device__ __forceinline__ Word<T> narrow(const float (&in)[Word<T>::WIDTH]) {
    Word<T> word;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int k = 0; k < Word<T>::WIDTH; ++k) {
            word.e[k] = in[k];
        }
    } else {
        typename Two<T>::type* twos = reinterpret_cast<typename Two<T>::type*>(&word);
#pragma unroll
        for (int k = 0; k < Word<T>::WIDTH / 2; ++k) {
            twos[k] = Two<T>::rounded(in[2 * k], in[2 * k + 1]);
        }
    }
    return word;
}
