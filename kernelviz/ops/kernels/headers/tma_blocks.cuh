// Copies by TMA between shared memory and tensors of four dimensions, of which the last one is contiguous (sm_90 and later). The rest of what TMA
// needs is in tma.cuh.
#pragma once
#include "tma.cuh"

__device__ __forceinline__ void load_block(unsigned to, const char* map, int x, int row, int head, int batch, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to), "l"(map),
        "r"(x), "r"(row), "r"(head), "r"(batch), "r"(barrier)
        : "memory");
}
// Rows of BOXES neighbouring boxes of 64 elements, `box_bytes` apart in shared memory.
template <int BOXES> __device__ __forceinline__ void load_blocks(
    unsigned to, int box_bytes, const char* map, int row, int head, int batch, unsigned barrier) {
#pragma unroll
    for (int box = 0; box < BOXES; ++box) {
        load_block(to + box * box_bytes, map, 64 * box, row, head, batch, barrier);
    }
}
__device__ __forceinline__ void store_block(unsigned from, const char* map, int x, int row, int head, int batch) {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(map), "r"(x), "r"(row), "r"(head),
        "r"(batch), "r"(from)
        : "memory");
}
