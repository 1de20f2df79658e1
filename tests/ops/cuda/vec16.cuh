// kernelviz/ops/kernels/headers/vec16.cuh for the processor, and the shuffles of kernels that include it: accesses must be aligned, and
// streaming loads must be within what the test says is readable.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define INFINITE __builtin_inff()
template <typename T> T __ldcs(const T* from) { return *from; }

template <typename T> struct alignas(16) Vec16 {
    static constexpr int WIDTH = 16 / sizeof(T);
    T e[WIDTH];
};
template <typename T> Vec16<T>* aligned_vector(const Vec16<T>* vector) {
    if (reinterpret_cast<unsigned long long>(vector) % 16) {
        emulated::fail("an access of 16 bytes is not aligned");
    }
    return const_cast<Vec16<T>*>(vector);
}
template <typename T> Vec16<T> load_vec16(const Vec16<T>* from) { return *aligned_vector(from); }
template <typename T> void store_vec16(Vec16<T>* to, const Vec16<T>& vector) { *aligned_vector(to) = vector; }
template <typename T> Vec16<T> load_streaming(const Vec16<T>* from) {
    Vec16<T> vector;
    emulated::load_once(&vector, aligned_vector(from), 16);
    return vector;
}
template <typename T> void store_streaming(Vec16<T>* to, const Vec16<T>& vector) { store_vec16(to, vector); }
inline void __stcs(uint4* to, const uint4& vector) {
    store_vec16(reinterpret_cast<Vec16<unsigned>*>(to), reinterpret_cast<const Vec16<unsigned>&>(vector));
}
inline float to_float(float v) { return v; }
inline float to_float(__nv_bfloat16 v) { return v; }
inline float to_float(__half v) { return v; }
template <typename T> T from_float(float v) { return T(v); }
template <class T> T __shfl_xor_sync(unsigned, T value, int mask) {
    return __builtin_bit_cast(T, emulated::of_lane_with(__builtin_bit_cast(unsigned, value), mask));
}
inline float __shfl_sync(unsigned, float value, int lane) { return emulated::of_lane(value, lane); }
inline float __shfl_up_sync(unsigned, float value, int apart) {
    const int lane = threadIdx.x % 32;
    return emulated::of_lane(value, lane >= apart ? lane - apart : lane);
}
inline float __shfl_down_sync(unsigned, float value, int apart) {
    const int lane = threadIdx.x % 32;
    return emulated::of_lane(value, lane + apart < 32 ? lane + apart : lane);
}
template <class T, int COUNT> void make_opaque(Vec16<T> (&)[COUNT]) {}
