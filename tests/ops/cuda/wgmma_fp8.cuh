// kernelviz/ops/kernels/headers/wgmma_fp8.cuh for the processor. Sums are exact up to fp32, where the tensor core has about 14 bits.
#pragma once
#include "wgmma_products.h"

inline float of_e4m3(const unsigned char* from) {
    const int exponent = *from >> 3 & 15, fraction = *from & 7;
    const float size = exponent ? std::ldexp(8.0f + fraction, exponent - 10) : std::ldexp((float)fraction, -9);
    return (*from & 127) == 127 ? NAN : *from & 128 ? -size : size;
}
template <std::size_t Sums> inline void wgmma_fp8(float (&d)[Sums], unsigned long long a, unsigned long long b, int add) {
    operands = {of_e4m3, 1, 32};
    fibers[self].started.push_back({d, nullptr, a, b, add, 2 * (int)Sums});
}
