// Conversions of vectors of 16 bytes for the processor, and products of packed pairs of bfloat16.
#pragma once
#include "vec16.cuh"

inline float rsqrtf(float value) { return 1.0f / __builtin_sqrtf(value); }

template <typename T> void widen(const Vec16<T>& vector, float (&out)[Vec16<T>::WIDTH]) {
    for (int i = 0; i < Vec16<T>::WIDTH; ++i) {
        out[i] = vector.e[i];
    }
}
template <typename T> Vec16<T> narrow(const float (&in)[Vec16<T>::WIDTH]) {
    Vec16<T> vector;
    for (int i = 0; i < Vec16<T>::WIDTH; ++i) {
        vector.e[i] = T(in[i]);
    }
    return vector;
}
struct __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
struct __half2 {
    __half x, y;
};
template <typename T> struct PackedPair {
    using type = __nv_bfloat162;
    static type rounded(float low, float high) { return {low, high}; }
};
template <> struct PackedPair<__half> {
    using type = __half2;
    static type rounded(float low, float high) { return {low, high}; }
};
template <typename PAIR> float2 widened(PAIR pair) { return make_float2(pair.x, pair.y); }
inline __nv_bfloat16 relu_of_fma(__nv_bfloat16 x, __nv_bfloat16 s, __nv_bfloat16 b) { return fmaxf(fmaf(x, s, b), 0.0f); }
inline __nv_bfloat162 __hfma2_relu(__nv_bfloat162 x, __nv_bfloat162 s, __nv_bfloat162 b) {
    return {relu_of_fma(x.x, s.x, b.x), relu_of_fma(x.y, s.y, b.y)};
}
