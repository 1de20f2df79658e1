// kernelviz/ops/kernels/headers/wgmma_exchanged.cuh for the processor: the same functions.
#pragma once
#include "wgmma.cuh"

template <int COUNT> void wgmma_exchanged(float (&d)[COUNT], unsigned long long a, unsigned long long b) {
    emulated::wgmma(d, COUNT, nullptr, a, b, true, {FORMAT_OF<ELEMENT>, false, true});
}
