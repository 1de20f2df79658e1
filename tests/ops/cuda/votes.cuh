// kernelviz/ops/kernels/headers/votes.cuh for the processor.
#pragma once

inline unsigned lanes_with(bool holds) {
    unsigned bits = holds ? 1u << threadIdx.x % 32 : 0u;
    for (int distance = 1; distance < 32; distance *= 2) {
        bits |= emulated::of_lane_with(bits, distance);
    }
    return bits;
}
inline int lowest_bit(unsigned bits) { return __builtin_ctz(bits); }
