// kernelviz/ops/kernels/headers/mma_integers.cuh for the processor: the same functions.
#pragma once

constexpr float INTEGERS_AS_FLOATS = 12582912.0f;
constexpr int INTEGER_ZERO = 0x4b400000;

inline void multiply_add_bytes(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { emulated::mma_of_bytes(d, a, b); }
inline int add_bytes(int sum, unsigned bytes) {
    for (int i = 0; i < 4; ++i) {
        sum += static_cast<signed char>(bytes >> 8 * i);
    }
    return sum;
}
inline unsigned permute_bytes(unsigned low, unsigned high, unsigned order) {
    const unsigned long long both = (unsigned long long)high << 32 | low;
    unsigned bytes = 0;
    for (int i = 0; i < 4; ++i) {
        bytes |= unsigned(both >> (order >> 4 * i & 7) * 8 & 255) << 8 * i;
    }
    return bytes;
}
inline float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
