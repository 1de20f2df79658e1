// Keeps loads before the first use of what any of them loads: without it, the compiler moves each one to where its number is used, so that fewer
// are in flight. tests/ops/cuda/loads_first.cuh does nothing.
#pragma once

__device__ __forceinline__ void loads_first(uint4& bits) { asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w)); }
__device__ __forceinline__ void loads_first(uint2& bits) { asm volatile("" : "+r"(bits.x), "+r"(bits.y)); }
__device__ __forceinline__ void loads_first(unsigned& bits) { asm volatile("" : "+r"(bits)); }
__device__ __forceinline__ void loads_first(unsigned short& bits) { asm volatile("" : "+h"(bits)); }
template <typename T, int COUNT> __device__ __forceinline__ void loads_first(T (&bits)[COUNT]) {
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        loads_first(bits[k]);
    }
}
