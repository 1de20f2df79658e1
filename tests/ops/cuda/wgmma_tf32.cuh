// kernelviz/ops/kernels/headers/wgmma_tf32.cuh for the processor.
#pragma once
#include "warpgroups.cuh"
#include "wgmma_products.h"

inline void store_two(unsigned to, float first, float second) {
    together({to, {}}, [](Fiber* lanes) {
        check_banks(lanes, 0, 16, 8, "a store");
        check_banks(lanes, 16, 16, 8, "a store");
    });
    memcpy(in_shared(block(), to, 8), &first, 4);
    memcpy(in_shared(block(), to, 8) + 4, &second, 4);
}

inline float of_tf32(const unsigned char* from) {
    unsigned bits;
    memcpy(&bits, from, 4);
    bits &= ~0x1fffu;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
template <std::size_t Sums>
inline void wgmma_tf32(float (&d)[Sums], const unsigned (&a)[4], unsigned long long b, int add) {
    operands = {of_tf32, 4, 8};
    fibers[self].started.push_back({d, a, 0, b, add, 2 * (int)Sums});
}
