// Products of attention by a warpgroup (sm_90a only): scores of 64 queries, Q Kᵀ, and weighted sums of values, P V. ELEMENT_PTX is "bf16" or "f16".
// In Q and K, the head's dimension is contiguous; in V also, which makes V an operand whose N is contiguous (PTX: transposed). P is in registers:
// of a warp's 16 rows and 16 keys, a thread has four times two neighbouring elements, in the order in which two times eight columns of scores lie.
#pragma once

#include "wgmma.cuh"

// D (64×DIMENSION, fp32, in registers) += A (64×16, in registers) B (16×DIMENSION, in shared memory, DIMENSION contiguous).
#define DEFINE_VALUES(DIMENSION, SUMS, A0, A1, A2, A3, B0)                                                                  \
    __device__ __forceinline__ void wgmma_values(float (&d)[SUMS], const unsigned* a, unsigned long long b) {               \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #DIMENSION "k16.f32." ELEMENT_PTX "." ELEMENT_PTX " {" SUMS_##SUMS \
                     "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B0 ", 1, 1, 1, 1;\n"                                 \
                     : FLOATS_##SUMS(d, 0)                                                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                                 \
    }
DEFINE_VALUES(64, 32, 32, 33, 34, 35, 36)
DEFINE_VALUES(128, 64, 64, 65, 66, 67, 68)
DEFINE_VALUES(256, 128, 128, 129, 130, 131, 132)
