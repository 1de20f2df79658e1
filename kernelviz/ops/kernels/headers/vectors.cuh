// What every kernel of 16-byte accesses needs: words of ELEMENT, and conversions. Compiled with -DELEMENT=float, __half or __nv_bfloat16.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define INFINITE __int_as_float(0x7f800000)

__device__ __forceinline__ float to_float(float v) { return v; }
__device__ __forceinline__ float to_float(__half v) { return __half2float(v); }
__device__ __forceinline__ float to_float(__nv_bfloat16 v) { return __bfloat162float(v); }

// Rounded to nearest, ties to even.
template <typename T> __device__ __forceinline__ T from_float(float v);
template <> __device__ __forceinline__ float from_float<float>(float v) { return v; }
template <> __device__ __forceinline__ __half from_float<__half>(float v) { return __float2half_rn(v); }
template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float v) { return __float2bfloat16_rn(v); }

// 2^v, at most 2 units in the last place off, tiny results flushed to zero (PTX ISA, ex2.approx.ftz): one instruction, where exp2f
// without fast math takes four.
__device__ __forceinline__ float exp2_fast(float v) {
    float found;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(found) : "f"(v));
    return found;
}

// 16 bytes of T: one load or store instruction. Pointers to words are 16-byte aligned; the bind checks that.
template <typename T> struct alignas(16) Word {
    static constexpr int WIDTH = 16 / sizeof(T);
    T e[WIDTH];
};

// Streaming: nothing is read twice, so the caches are asked to keep nothing (evict first).
template <typename T> __device__ __forceinline__ Word<T> load_streaming(const Word<T>* from) {
    const uint4 bits = __ldcs(reinterpret_cast<const uint4*>(from));
    return *reinterpret_cast<const Word<T>*>(&bits);
}
template <typename T> __device__ __forceinline__ void store_streaming(Word<T>* to, const Word<T>& word) {
    __stcs(reinterpret_cast<uint4*>(to), *reinterpret_cast<const uint4*>(&word));
}
template <typename T> __device__ __forceinline__ Word<T> load_word(const Word<T>* from) {
    const uint4 bits = *reinterpret_cast<const uint4*>(from);
    return *reinterpret_cast<const Word<T>*>(&bits);
}
template <typename T> __device__ __forceinline__ void store_word(Word<T>* to, const Word<T>& word) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(&word);
}
