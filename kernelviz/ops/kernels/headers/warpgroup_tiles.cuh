// The way of a warpgroup's results from registers through shared memory to device memory (sm_90a). Addresses of shared memory are 32-bit numbers, as
// __cvta_generic_to_shared gives them.
#pragma once
#include "warpgroups.cuh"

// The sum of a number of each thread of the warp, for all of them.
__device__ __forceinline__ int warp_sum(int value) {
    int sum;
    asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(value));
    return sum;
}
__device__ __forceinline__ uint4 load_shared_16_bytes(unsigned from) {
    uint4 value;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w) : "r"(from)
                 : "memory");
    return value;
}
