// kernelviz/ops/kernels/headers/wgmma_layouts.cuh for the processor: the same functions.
#pragma once
#include "wgmma.cuh"

template <int COUNT> void wgmma_of_layouts(float (&d)[COUNT], unsigned long long a, unsigned long long b, int add) {
    emulated::wgmma(d, COUNT, nullptr, a, b, add, {FORMAT_OF<ELEMENT>, A_K_CONTIGUOUS, B_K_CONTIGUOUS});
}
