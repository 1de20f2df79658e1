// kernelviz/ops/kernels/headers/warpgroup_tiles.cuh for the processor: the same functions.
#pragma once
#include "warpgroups.cuh"

inline int warp_sum(int value) { return emulated::warp_sum(value); }
inline uint4 load_shared_16_bytes(unsigned from) {
    uint4 value;
    emulated::load_alone(&value, from, 16);
    return value;
}
