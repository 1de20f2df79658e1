// kernelviz/ops/kernels/headers/warpgroups.cuh for the processor.
#pragma once
#include "hopper.h"

template <int Registers> void release_registers() {}
template <int Registers> void take_registers() {}
inline unsigned dynamic_shared_memory() { return SHARED_BASE; }
inline void warpgroup_barrier(int warpgroup) {
    if (warpgroup != (int)(threadIdx.x / WARPGROUP_THREADS)) {
        fail("the barrier of another warpgroup");
    }
    meet(block().meetings[OF_WARPGROUP + warpgroup], WARPGROUP_THREADS);
}
// PTX ISA, "stmatrix": thread 8 i + r gives the address of row r of matrix i, of which thread t holds two elements of row t / 4.
inline void store_matrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    Lane& lane = block().lanes[threadIdx.x];
    lane.address = to;
    const unsigned values[4] = {a, b, c, d};
    memcpy(lane.values, values, 16);
    const unsigned first = threadIdx.x / WARP * WARP, of_block = fibers[current].block;
    meet(block().meetings[OF_WARP + threadIdx.x / WARP], WARP, [=] {
        const Lane* lanes = blocks_of_cluster[of_block].lanes.data() + first;
        for (unsigned matrix = 0; matrix < 4; ++matrix) {
            for (unsigned t = 0; t < WARP; ++t) {
                const unsigned row = lanes[8 * matrix + t / 4].address;
                if (row % 16) {
                    fail("a row of stmatrix is not aligned");
                }
                memcpy(in_shared(of_block, row + t % 4 * 4, 4), &lanes[t].values[matrix], 4);
            }
        }
    });
}
