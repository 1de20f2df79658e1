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
__device__ __forceinline__ void store_block(unsigned from, const char* map, int x, int row, int head, int batch) {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(map), "r"(x), "r"(row), "r"(head),
        "r"(batch), "r"(from)
        : "memory");
}
