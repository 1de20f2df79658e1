// kernelviz/ops/kernels/headers/wgmma_fp8.cuh for the processor: the same functions.
#pragma once
#include "wgmma.cuh"

template <int COUNT> void wgmma_fp8(float (&d)[COUNT], unsigned long long a, unsigned long long b, int add) {
    emulated::wgmma(d, COUNT, nullptr, a, b, add, {emulated::Format::E4M3, true, true});
}
inline float load_early(const float* from) { return *from; }
