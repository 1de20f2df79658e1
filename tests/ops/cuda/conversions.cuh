// What kernels use of kernelviz/ops/kernels/headers/conversions.cuh and vec16.cuh, for the processor.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define INFINITE __builtin_inff()
template <class T> float to_float(T value) { return static_cast<float>(value); }
template <class T> T from_float(float value) { return T(value); }
template <class T> struct alignas(16) Vec16 {
    static constexpr int WIDTH = 16 / sizeof(T);
    T e[WIDTH];
};
template <class T> T __ldcs(const T* from) { return *from; }
template <class T> void __stcs(T* to, T value) { *to = value; }
template <class T> T __shfl_xor_sync(unsigned, T value, int mask) {
    return __builtin_bit_cast(T, emulated::of_lane_with(__builtin_bit_cast(unsigned, value), mask));
}
inline float rsqrtf(float value) { return 1.0f / __builtin_sqrtf(value); }
template <class T> Vec16<T> load_vec16(const Vec16<T>* from) { return *from; }
template <class T> void store_vec16(Vec16<T>* to, const Vec16<T>& vector) { *to = vector; }
template <class T> void widen(const Vec16<T>& vector, float (&out)[Vec16<T>::WIDTH]) {
    for (int e = 0; e < Vec16<T>::WIDTH; ++e) {
        out[e] = to_float(vector.e[e]);
    }
}
template <class T> Vec16<T> narrow(const float (&in)[Vec16<T>::WIDTH]) {
    Vec16<T> vector;
    for (int e = 0; e < Vec16<T>::WIDTH; ++e) {
        vector.e[e] = T(in[e]);
    }
    return vector;
}
