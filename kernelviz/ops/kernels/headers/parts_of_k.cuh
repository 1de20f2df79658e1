// Sums of warpgroups that computed parts of K of one tile, exchanged in device memory. tests/ops/cuda/parts_of_k.cuh does the same with the processor.
#pragma once

// The sums of a thread: four at a time, beside those of the other threads of the warpgroup.
template <int COUNT> __device__ __forceinline__ void store_part(float4* to, const float (&sums)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        __stcg(to + i / 4 * 128, make_float4(sums[i], sums[i + 1], sums[i + 2], sums[i + 3]));
    }
}
template <int COUNT> __device__ __forceinline__ void add_part(float (&sums)[COUNT], const float4* from) {
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        const float4 four = __ldcg(from + i / 4 * 128);
        sums[i] += four.x;
        sums[i + 1] += four.y;
        sums[i + 2] += four.z;
        sums[i + 3] += four.w;
    }
}
// By all threads of a warpgroup: whether `parts` - 1 others have called this before; then what they had stored is visible. `arrived` is zero before and
// afterwards. `shared`: the address of four bytes of the warpgroup.
__device__ __forceinline__ bool is_last_warpgroup(unsigned* arrived, unsigned parts, int warpgroup, unsigned shared) {
    __threadfence();
    asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory");
    if (threadIdx.x % 128 == 0) {
        const unsigned before = atomicAdd(arrived, 1u);
        if (before == parts - 1) {
            *arrived = 0;
        }
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared), "r"(before) : "memory");
    }
    asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory");
    unsigned before;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(before) : "r"(shared) : "memory");
    if (before == parts - 1) {
        __threadfence();
    }
    return before == parts - 1;
}
