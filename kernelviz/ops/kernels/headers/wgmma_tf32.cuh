// Products in tf32 by a warpgroup (sm_90a only). In B, K is contiguous: the instruction has no other layout. A is in registers, of each
// thread four numbers: with r = lane / 4 and q = lane % 4, those of row 16 * warp + r and column q, row r + 8 and column q, row r and column
// q + 4, row r + 8 and column q + 4. The tensor core ignores the last 13 bits of each number.
#pragma once

#include "wgmma.cuh"

// Two neighbouring sums to shared memory.
__device__ __forceinline__ void store_two(unsigned to, float first, float second) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(first), "f"(second) : "memory");
}

// D (64×COLUMNS, fp32, in registers) += A (64×8, in registers) Bᵀ (B: COLUMNS×8, in shared memory). `add` 0 replaces D instead. A0 to ADD number the operands
// after the sums.
#define DEFINE_WGMMA_TF32(COLUMNS, SUMS, A0, A1, A2, A3, B0, ADD)                                                          \
    __device__ __forceinline__ void wgmma_tf32(float (&d)[SUMS], const unsigned (&a)[4], unsigned long long b, int add) {   \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #ADD ", 0;\n"                                                    \
                     "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k8.f32.tf32.tf32 {" SUMS_##SUMS                          \
                     "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B0 ", p, 1, 1;\n}\n"                                \
                     : FLOATS_##SUMS(d, 0)                                                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                                       \
    }
DEFINE_WGMMA_TF32(128, 64, 64, 65, 66, 67, 68, 69)
DEFINE_WGMMA_TF32(256, 128, 128, 129, 130, 131, 132, 133)
