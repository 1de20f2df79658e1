// kernelviz/ops/kernels/headers/softmax_fragments.cuh for the processor.
#pragma once
#include "skinny.cuh"

inline float of_other_lane(float value, int mask) { return emulated::of_lane_with(value, mask); }
inline int of_lane(int value, int lane) { return int(__float_as_uint(emulated::of_lane(__uint_as_float(unsigned(value)), lane))); }
inline float power_of_two(float x) { return exp2f(x); }
// Elements 2q and 2q + 1 of row g of the transpose are element g of rows 2q and 2q + 1.
inline unsigned transposed(unsigned pair) {
    const int lane = threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;
    unsigned both = 0;
    for (int half = 0; half < 2; ++half) {
        const float other = emulated::of_lane(__uint_as_float(pair), (column + half) * 4 + row / 2);
        both |= (__float_as_uint(other) >> row % 2 * 16 & 0xffffu) << half * 16;
    }
    return both;
}
inline void write_one(unsigned to, float value) { emulated::store_alone(to, &value, 4); }
inline float read_one(unsigned from) {
    float value;
    emulated::load_alone(&value, from, 4);
    return value;
}
inline float4 read_four(unsigned from) {
    float4 value;
    emulated::load_alone(&value, from, 16);
    return value;
}
inline bool is_last_block(unsigned* arrived, unsigned blocks) { return emulated::is_last_to_arrive(arrived, blocks); }
