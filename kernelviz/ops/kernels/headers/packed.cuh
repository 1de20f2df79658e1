// Arithmetic on two numbers of 16 bits in a register, and 4-bit weights as such pairs. tests/ops/cuda/packed.cuh does the same with the processor.
#pragma once
#include "skinny.cuh"

template <typename ELEMENT_TYPE> struct Packed;
template <> struct Packed<__nv_bfloat16> {
    using Pair = __nv_bfloat162;
};
template <> struct Packed<__half> {
    using Pair = __half2;
};
template <typename ELEMENT_TYPE> __device__ __forceinline__ typename Packed<ELEMENT_TYPE>::Pair as_pair(unsigned bits) {
    return *reinterpret_cast<const typename Packed<ELEMENT_TYPE>::Pair*>(&bits);
}
template <typename PAIR> __device__ __forceinline__ unsigned bits_of(PAIR pair) { return *reinterpret_cast<const unsigned*>(&pair); }
template <typename ELEMENT_TYPE> __device__ __forceinline__ unsigned subtract_pairs(unsigned a, unsigned b) {
    return bits_of(__hsub2(as_pair<ELEMENT_TYPE>(a), as_pair<ELEMENT_TYPE>(b)));
}
template <typename ELEMENT_TYPE> __device__ __forceinline__ unsigned multiply_pairs(unsigned a, unsigned b) {
    return bits_of(__hmul2(as_pair<ELEMENT_TYPE>(a), as_pair<ELEMENT_TYPE>(b)));
}
// a · b + c, rounded once.
template <typename ELEMENT_TYPE> __device__ __forceinline__ unsigned multiply_add_pairs(unsigned a, unsigned b, unsigned c) {
    return bits_of(__hfma2(as_pair<ELEMENT_TYPE>(a), as_pair<ELEMENT_TYPE>(b), as_pair<ELEMENT_TYPE>(c)));
}

// (bits & mask) | magic as one instruction, which takes one of the two constants from a register.
__device__ __forceinline__ unsigned and_or(unsigned bits, unsigned mask, unsigned magic) {
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(bits), "r"(mask), "r"(magic));
    return result;
}

// Shared memory as one thread uses it, without a partner in the warp.
__device__ __forceinline__ void write_shared(unsigned to, uint4 value) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w) : "memory");
}
__device__ __forceinline__ void write_shared(unsigned to, float value) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory");
}
__device__ __forceinline__ float read_shared(unsigned from) {
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
    return value;
}
