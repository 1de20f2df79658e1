// kernelviz/ops/kernels/headers/mma_fp8.cuh for the processor. Sums are exact up to fp32, where the tensor core may have fewer bits.
#pragma once
#include <cmath>

#include "mma.cuh"

template <typename T> inline T __ldg(const T* from) { return *from; }

inline float of_e4m3(unsigned char bits) {
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const float size = exponent ? std::ldexp(8.0f + fraction, exponent - 10) : std::ldexp((float)fraction, -9);
    return (bits & 127) == 127 ? NAN : bits & 128 ? -size : size;
}
// PTX ISA, "Matrix Fragments for mma.m16n8k32".
inline void multiply_add_fp8(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    together({0, 0, d, a, b, true}, [](WarpLane* lanes) {
        float of_a[16][32], of_b[32][8];
        for (unsigned i = 0; i < WARP; ++i) {
            const unsigned char* bytes_of_a = static_cast<const unsigned char*>(lanes[i].a);
            const unsigned char* bytes_of_b = static_cast<const unsigned char*>(lanes[i].b);
            for (unsigned e = 0; e < 16; ++e) {
                of_a[i / 4 + e / 4 % 2 * 8][i % 4 * 4 + e % 4 + e / 8 * 16] = of_e4m3(bytes_of_a[e]);
            }
            for (unsigned e = 0; e < 8; ++e) {
                of_b[i % 4 * 4 + e % 4 + e / 4 * 16][i / 4] = of_e4m3(bytes_of_b[e]);
            }
        }
        for (unsigned i = 0; i < WARP; ++i) {
            float* sums = static_cast<float*>(lanes[i].to);
            for (unsigned e = 0; e < 4; ++e) {
                for (unsigned depth = 0; depth < 32; ++depth) {
                    sums[e] += of_a[i / 4 + e / 2 * 8][depth] * of_b[depth][i % 4 * 2 + e % 2];
                }
            }
        }
    });
}
