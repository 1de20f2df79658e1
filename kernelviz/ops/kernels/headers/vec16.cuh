// 16-byte vectors of ELEMENT and conversions of its elements, for every kernel of 16-byte accesses. Compiled with -DELEMENT=float, __half
// or __nv_bfloat16.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define INFINITE __int_as_float(0x7f800000)

__device__ __forceinline__ float to_float(float v) { return v; }
__device__ __forceinline__ float to_float(__half v) { return __half2float(v); }
__device__ __forceinline__ float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }

// Rounds to nearest, ties to even.
template <typename T> __device__ __forceinline__ T from_float(float v);
template <> __device__ __forceinline__ float from_float<float>(float v) { return v; }
template <> __device__ __forceinline__ __half from_float<__half>(float v) { return __float2half_rn(v); }
template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float v) { return __float2bfloat16_rn(v); }

// 2^v with an error of at most 2 units in the last place; tiny results are flushed to zero (PTX ISA, ex2.approx.ftz). It is one
// instruction, where exp2f without fast math takes four.
__device__ __forceinline__ float exp2_fast(float v) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(v));
    return power;
}

// 16 bytes of T: one load or store instruction. Pointers to vectors must be 16-byte aligned; the bind function checks that.
template <typename T> struct alignas(16) Vec16 {
    static constexpr int WIDTH = 16 / sizeof(T);
    T e[WIDTH];
};

// Streaming: nothing is read twice, so the caches need not keep it (evict first).
template <typename T> __device__ __forceinline__ Vec16<T> load_streaming(const Vec16<T>* from) {
    const uint4 bits = __ldcs(reinterpret_cast<const uint4*>(from));
    return *reinterpret_cast<const Vec16<T>*>(&bits);
}
template <typename T> __device__ __forceinline__ void store_streaming(Vec16<T>* to, const Vec16<T>& vector) {
    __stcs(reinterpret_cast<uint4*>(to), *reinterpret_cast<const uint4*>(&vector));
}
template <typename T> __device__ __forceinline__ Vec16<T> load_vec16(const Vec16<T>* from) {
    const uint4 bits = *reinterpret_cast<const uint4*>(from);
    return *reinterpret_cast<const Vec16<T>*>(&bits);
}
template <typename T> __device__ __forceinline__ void store_vec16(Vec16<T>* to, const Vec16<T>& vector) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(&vector);
}

// Hide from the compiler where a vector's bits come from. Otherwise it keeps the fp32 numbers that it converted them to, in twice the
// registers, until they are needed again, or spills them.
template <typename T> __device__ __forceinline__ const Vec16<T>& opaque(Vec16<T>& vector) {
    uint4& bits = *reinterpret_cast<uint4*>(&vector);
    asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
    return vector;
}
template <typename T, int COUNT> __device__ __forceinline__ void make_opaque(Vec16<T> (&v)[COUNT]) {
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        opaque(v[k]);
    }
}
