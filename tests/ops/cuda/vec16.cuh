// Vectors of 16 bytes for the processor: accesses must be aligned, and streaming loads must be within what the test says is readable.
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
