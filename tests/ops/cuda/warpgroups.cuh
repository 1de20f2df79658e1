// kernelviz/ops/kernels/headers/warpgroups.cuh for the processor: the same functions.
#pragma once
#include "cuda_warpgroups.h"

inline unsigned aligned_shared_memory() { return (SHARED_BASE + 1023) / 1024 * 1024; }
template <int Registers> inline void release_registers() {}
template <int Registers> inline void take_registers() {}

inline void store_matrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    together({to, {a, b, c, d}}, [](Fiber* lanes) {
        for (unsigned matrix = 0; matrix < 4; ++matrix) {
            check_banks(lanes, 8 * matrix, 8, 16, "a store of matrices");
            for (unsigned lane = 0; lane < WARP; ++lane) {
                memcpy(in_shared(block(), lanes[8 * matrix + lane / 4].lane.address, 16) + lane % 4 * 4, &lanes[lane].lane.values[matrix], 4);
            }
        }
    });
}
inline void load_two(unsigned& first, unsigned& second, unsigned from) {
    together({from, {}}, [](Fiber* lanes) {
        check_banks(lanes, 0, 16, 8, "a load");
        check_banks(lanes, 16, 16, 8, "a load");
    });
    memcpy(&first, in_shared(block(), from, 8), 4);
    memcpy(&second, in_shared(block(), from, 8) + 4, 4);
}
