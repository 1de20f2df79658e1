// max(v, 0) that propagates NaN, unlike fmaxf: for single elements and for 16-byte vectors of them.
#pragma once
#include "vec16.cuh"

__device__ __forceinline__ float relu(float v) {
    float out;
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(out) : "f"(v));
    return out;
}
__device__ __forceinline__ __half relu(__half v) { return __hmax_nan(v, __ushort_as_half(0)); }
__device__ __forceinline__ __nv_bfloat16 relu(__nv_bfloat16 v) { return __hmax_nan(v, __ushort_as_bfloat16(0)); }
__device__ __forceinline__ __half2 relu(__half2 v) { return __hmax2_nan(v, __half2half2(__ushort_as_half(0))); }
__device__ __forceinline__ __nv_bfloat162 relu(__nv_bfloat162 v) {
    return __hmax2_nan(v, __bfloat162bfloat162(__ushort_as_bfloat16(0)));
}

// What one instruction processes: two elements of 16 bits.
template <typename T> struct Relu;
template <> struct Relu<float> { using type = float; };
template <> struct Relu<__half> { using type = __half2; };
template <> struct Relu<__nv_bfloat16> { using type = __nv_bfloat162; };

template <typename T> __device__ __forceinline__ Vec16<T> relu(Vec16<T> vector) {
    using Part = typename Relu<T>::type;
    Part* parts = reinterpret_cast<Part*>(&vector);
#pragma unroll
    for (int k = 0; k < 16 / (int)sizeof(Part); ++k) {
        parts[k] = relu(parts[k]);
    }
    return vector;
}
