// Copies by TMA between matrices and shared memory, the barriers on which they report, and clusters (sm_90 and later). Addresses of shared
// memory are 32-bit numbers, as __cvta_generic_to_shared gives them.
#pragma once

// --- barriers ---------------------------------------------------------------------------------------------------------------------
__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes the initialised barriers visible to TMA and to the other blocks of the cluster; a barrier of all threads must follow.
__device__ __forceinline__ void barrier_init_done() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_wait(unsigned barrier, int parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}
// Arrive, and expect this many bytes of copies.
__device__ __forceinline__ void barrier_expect(unsigned barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Arrive at the barrier at this address in the shared memory of a block of the cluster. Without ".release.cluster", which would wait
// for all earlier accesses to memory of the thread (MEMBAR.ALL.GPU): what was read before were the operands of finished wgmmas.
__device__ __forceinline__ void barrier_arrive_at(unsigned barrier, int block) {
    asm volatile(
        "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(
            barrier),
        "r"(block)
        : "memory");
}

// --- clusters ---------------------------------------------------------------------------------------------------------------------
__device__ __forceinline__ int rank_in_cluster() {
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// --- copies -----------------------------------------------------------------------------------------------------------------------
// Tensor maps of 128 bytes each, which a launch hands over by value: the kernel's parameter is `const __grid_constant__ Maps<N> maps`, and `maps + 128`
// is the second one. In device memory they would have to be fetched first, behind a fence: 0.4 to 0.5 us of each launch (products of 512³ to 1024³, on an H200).
template <int N>
struct alignas(64) Maps {
    char bytes[128 * N];

    __device__ __forceinline__ operator const char*() const {
        return bytes;
    }
};
__device__ __forceinline__ void load_box(unsigned to, const char* map, int column, int row, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(map), "r"(column), "r"(row), "r"(barrier)
        : "memory");
}
// To the same address of all blocks of the cluster whose bit is set, and to the barrier at the same address of each.
__device__ __forceinline__ void load_box_for(
    unsigned short blocks, unsigned to, const char* map, int column, int row, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
        "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
        : "memory");
}
// Makes what this thread wrote to shared memory visible to TMA.
__device__ __forceinline__ void fence_for_tma() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void store_box(unsigned from, const char* map, int column, int row) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column), "r"(row), "r"(from)
        : "memory");
}
__device__ __forceinline__ void store_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Until at most `Groups` of the stores of this thread still read shared memory.
template <int Groups>
__device__ __forceinline__ void store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Groups) : "memory");
}
// Until all stores of this thread have ended.
__device__ __forceinline__ void store_wait() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
