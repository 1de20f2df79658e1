// kernelviz/ops/kernels/headers/warpgroup_tiles.cuh for the processor: the same functions.
#pragma once
#include "cuda_clusters.h"

template <int Registers> void take_registers() {}
template <int Registers> void give_registers() {}
inline int warp_sum(int value) {
    static int sums[2][64], result[2][64];  // by block of the cluster and warp
    const unsigned of = rank(), warp = threadIdx.x / 32;
    sums[of][warp] += value;
    meet(block().meetings[1000 + warp], 32, [&] {
        result[of][warp] = sums[of][warp];
        sums[of][warp] = 0;
    });
    return result[of][warp];
}
inline void warpgroup_barrier(int number) { meet(block().meetings[number], 128); }

// PTX ISA, "stmatrix": lane 8 i + r gives the address of row r of matrix i.
inline void store_matrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    static unsigned address[2][64][32], value[2][64][32][4];  // by block of the cluster, warp and lane
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, of = rank();
    address[of][warp][lane] = to;
    const unsigned values[4] = {a, b, c, d};
    memcpy(value[of][warp][lane], values, sizeof values);
    fiber().unfenced = true;
    meet(block().meetings[1000 + warp], 32, [&] {
        for (unsigned matrix = 0; matrix < 4; ++matrix) {
            unsigned banks = 0;
            for (unsigned row = 0; row < 8; ++row) {
                const unsigned at = address[of][warp][8 * matrix + row];
                banks |= 1 << at / 16 % 8;
                if (at % 16) {
                    fail("a row of stmatrix is not aligned");
                }
                for (unsigned four = 0; four < 4; ++four) {
                    memcpy(in_shared(block(), at + 4 * four, 4), &value[of][warp][4 * row + four][matrix], 4);
                }
            }
            if (banks != 0xff) {
                fail("a bank conflict of stmatrix");
            }
        }
    });
}
inline uint4 load_shared_16_bytes(unsigned from) {
    uint4 value;
    if (from % 16) {
        fail("a load from shared memory is not aligned");
    }
    memcpy(&value, in_shared(block(), from, 16), 16);
    return value;
}
