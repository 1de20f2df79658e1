// Copies of neighbouring bytes from global to shared memory by the copy engine of an SM (TMA, sm_90 and later), without a tensor map. They report on
// the barriers of tma.cuh. PTX ISA, "cp.async.bulk". tests/ops/cuda/bulk.cuh does the same with the processor.
#pragma once
#include "packed.cuh"
#include "tma.cuh"

// `bytes` and both addresses are multiples of 16. The bytes are counted at the barrier, which must expect them.
__device__ __forceinline__ void copy_bulk(unsigned to, const char* from, int bytes, unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes),
                 "r"(barrier)
                 : "memory");
}
// Begins to bring what is at this address into the L2.
__device__ __forceinline__ void prefetch_to_l2(const char* from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

__device__ __forceinline__ void write_shared(unsigned to, float first, float second) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(first), "f"(second) : "memory");
}
__device__ __forceinline__ void read_shared(float& first, float& second, unsigned from) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(first), "=f"(second) : "r"(from) : "memory");
}
// The number of a thread of the warp.
__device__ __forceinline__ float of_lane(float value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
