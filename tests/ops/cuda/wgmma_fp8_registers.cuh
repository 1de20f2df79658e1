// kernelviz/ops/kernels/headers/wgmma_fp8_registers.cuh for the processor: the same functions.
#pragma once
#include "wgmma_fp8.cuh"

template <int COUNT> void wgmma_fp8_registers(float (&d)[COUNT], const unsigned (&a)[4], unsigned long long b, int add) {
    emulated::wgmma(d, COUNT, a, 0, b, add, {emulated::Format::E4M3, true, true});
}
inline void load_fragment(unsigned (&a)[4], unsigned row) { emulated::ldmatrix(a, row, false); }
inline float load_early(const float* from) { return *from; }
