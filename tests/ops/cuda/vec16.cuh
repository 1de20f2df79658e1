// kernelviz/ops/kernels/headers/vec16.cuh for the processor, and the shuffles of kernels that include it.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

inline float to_float(float v) { return v; }
inline float to_float(__half v) { return v; }
inline float to_float(__nv_bfloat16 v) { return v; }
template <class T> T from_float(float v) { return static_cast<T>(v); }

template <class T> struct alignas(16) Vec16 {
    static constexpr int WIDTH = 16 / sizeof(T);
    T e[WIDTH];
};
template <class T> void check_alignment(const Vec16<T>* at) {
    if (reinterpret_cast<unsigned long long>(at) % 16) {
        emulated::fail("the address of a vector is not a multiple of 16");
    }
}
template <class T> Vec16<T> load_vec16(const Vec16<T>* from) {
    check_alignment(from);
    return *from;
}
template <class T> void store_vec16(Vec16<T>* to, const Vec16<T>& vector) {
    check_alignment(to);
    *to = vector;
}

inline float __shfl_xor_sync(unsigned, float value, int mask) { return emulated::of_lane_with(value, mask); }
inline float __shfl_sync(unsigned, float value, int lane) { return emulated::of_lane(value, lane); }
inline float __shfl_up_sync(unsigned, float value, int apart) {
    const int lane = threadIdx.x % 32;
    return emulated::of_lane(value, lane >= apart ? lane - apart : lane);
}

template <class T, int COUNT> void make_opaque(Vec16<T> (&)[COUNT]) {}
