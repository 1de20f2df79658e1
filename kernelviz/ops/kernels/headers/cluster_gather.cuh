// A number of each block of a cluster for all its blocks (compute capability 9.0). tests/ops/cuda/cluster_gather.cuh does the same with the
// processor.
#pragma once

__device__ __forceinline__ unsigned block_in_cluster() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// By all threads, before they load, and once in a kernel: that this block has started, so that others may write to its shared memory.
__device__ __forceinline__ void block_has_started() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }

// Call each of these once in a kernel, from all threads; only `store_in_block` may be called by some. It sets `to` in the block `rank`; call it after
// `wait_for_started`. After `block_has_stored` a block may exit if no other block stores in its shared memory. All stores are visible after
// `wait_for_stored`.
__device__ __forceinline__ void wait_for_started() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ __forceinline__ void store_in_block(unsigned rank, float* to, float value) {
    const unsigned mine = static_cast<unsigned>(__cvta_generic_to_shared(to));
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(mine), "r"(rank));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(value) : "memory");
}
__device__ __forceinline__ void block_has_stored() {
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void wait_for_stored() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Replaces the last steps; call `block_has_started` before, and this once in a kernel, from all threads. Afterwards `of_block[r]` in every block is the
// `value` that the first BLOCKS threads of block r have.
template <int BLOCKS> __device__ __forceinline__ void gather(float value, float* of_block) {
    wait_for_started();
    if (threadIdx.x < BLOCKS) {
        store_in_block(threadIdx.x, of_block + block_in_cluster(), value);
    }
    block_has_stored();
    wait_for_stored();
}
