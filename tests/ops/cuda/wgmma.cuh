// kernelviz/ops/kernels/headers/wgmma.cuh for the processor: the same functions.
#pragma once
#include "element_formats.cuh"

#ifndef ELEMENT
#define ELEMENT __nv_bfloat16
#endif

inline unsigned long long wgmma_operand(unsigned address, unsigned leading_bytes, unsigned stride_bytes) {
    return (unsigned long long)((address & 0x3FFFF) >> 4) | (unsigned long long)(leading_bytes >> 4) << 16 |
           (unsigned long long)(stride_bytes >> 4) << 32 | 1ull << 62;
}
inline void wgmma_fence() { emulated::wgmma_fence(); }
inline void wgmma_commit() { emulated::wgmma_commit(); }
template <int Groups> void wgmma_wait() { emulated::wgmma_wait(Groups); }
template <int Count> void order_registers(float (&)[Count]) {}
template <bool A_BY_K, bool B_BY_K, int COUNT> void wgmma(float (&d)[COUNT], unsigned long long a, unsigned long long b, int add) {
    emulated::wgmma(d, COUNT, nullptr, a, b, add, {FORMAT_OF<ELEMENT>, A_BY_K, B_BY_K});
}
