// What kernels use of kernelviz/ops/kernels/headers/rows.cuh, for the processor.
#pragma once
#include "conversions.cuh"

struct Add {
    float operator()(float a, float b) const { return a + b; }
};
template <int LANES, class V, class Combine> V warp_reduce(V value, Combine combine) {
    for (int lanes = LANES / 2; lanes > 0; lanes /= 2) {
        value = combine(value, __shfl_xor_sync(0xffffffffu, value, lanes));
    }
    return value;
}
