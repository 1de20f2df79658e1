// kernelviz/ops/kernels/headers/wgmma_fp8_registers.cuh for the processor: the same functions.
#pragma once
#include "warpgroups.cuh"
#include "wgmma_fp8.cuh"

template <std::size_t Sums>
inline void wgmma_fp8_registers(float (&d)[Sums], const unsigned (&a)[4], unsigned long long b, int add) {
    operands = {of_e4m3, 1, 32};
    fibers[self].started.push_back({d, a, 0, b, add, 2 * (int)Sums});
}
inline void load_fragment(unsigned (&a)[4], unsigned row) {
    together({row, {}}, [](Fiber* lanes) {
        unsigned loaded[WARP][4];
        for (unsigned matrix = 0; matrix < 4; ++matrix) {
            check_banks(lanes, 8 * matrix, 8, 16, "ldmatrix");
            for (unsigned lane = 0; lane < WARP; ++lane) {
                memcpy(&loaded[lane][matrix], in_shared(block(), lanes[8 * matrix + lane / 4].lane.address, 16) + lane % 4 * 4, 4);
            }
        }
        for (unsigned lane = 0; lane < WARP; ++lane) {
            memcpy(lanes[lane].lane.values, loaded[lane], 16);
        }
    });
    memcpy(a, fibers[self].lane.values, 16);
}
inline float load_early(const float* from) { return *from; }
