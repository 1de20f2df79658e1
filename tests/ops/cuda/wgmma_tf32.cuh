// kernelviz/ops/kernels/headers/wgmma_tf32.cuh for the processor: the same functions.
#pragma once
#include "wgmma.cuh"

inline void store_two(unsigned to, float first, float second) {
    const float both[2] = {first, second};
    emulated::store(to, both, 8);
}
template <int COUNT> void wgmma_tf32(float (&d)[COUNT], const unsigned (&a)[4], unsigned long long b, int add) {
    emulated::wgmma(d, COUNT, a, 0, b, add, {emulated::Format::TF32, true, true});
}
