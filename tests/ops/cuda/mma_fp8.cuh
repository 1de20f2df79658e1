// kernelviz/ops/kernels/headers/mma_fp8.cuh for the processor: the same functions.
#pragma once
#include "mma.cuh"

inline void multiply_add_fp8(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { emulated::mma(d, a, b, emulated::Format::E4M3); }
