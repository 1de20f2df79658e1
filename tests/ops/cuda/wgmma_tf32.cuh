// kernelviz/ops/kernels/headers/wgmma_tf32.cuh for the processor.
#pragma once
#include "wgmma_products.h"

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
