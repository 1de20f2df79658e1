// kernelviz/ops/kernels/headers/bulk.cuh for the processor: the same functions.
#pragma once
#include "packed.cuh"
#include "tma.cuh"

inline void copy_bulk(unsigned to, const char* from, int bytes, unsigned barrier) { emulated::copy_bulk(to, from, bytes, barrier); }
inline void prefetch_to_l2(const char* from) { emulated::prefetch(from); }
inline void write_shared(unsigned to, float first, float second) {
    const float both[2] = {first, second};
    emulated::store_alone(to, both, 8);
}
inline void read_shared(float& first, float& second, unsigned from) {
    float both[2];
    emulated::load_alone(both, from, 8);
    first = both[0], second = both[1];
}
inline float of_lane(float value, int lane) { return emulated::of_lane(value, lane); }
