// Products of 8-bit floats (e4m3) by a warpgroup (sm_90a only). In both operands K is contiguous: the instruction has no other layout.
#pragma once

#include "wgmma.cuh"

// D (64×COLUMNS, fp32, in registers) += A (64×32) Bᵀ (B: COLUMNS×32), both in shared memory. `add` 0 replaces D instead. A0 to ADD number the operands after
// the sums.
#define DEFINE_WGMMA_FP8(COLUMNS, SUMS, A0, B0, ADD)                                                                      \
    __device__ __forceinline__ void wgmma_fp8(float (&d)[SUMS], unsigned long long a, unsigned long long b, int add) {     \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #ADD ", 0;\n"                                                   \
                     "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k32.f32.e4m3.e4m3 {" SUMS_##SUMS "}, %" #A0 ", %" #B0   \
                     ", p, 1, 1;\n}\n"                                                                                    \
                     : FLOATS_##SUMS(d, 0)                                                                                 \
                     : "l"(a), "l"(b), "r"(add));                                                                          \
    }
DEFINE_WGMMA_FP8(128, 64, 64, 65, 66)
DEFINE_WGMMA_FP8(192, 96, 96, 97, 98)
DEFINE_WGMMA_FP8(256, 128, 128, 129, 130)

// A number that nobody writes. The compiler must not move the load to where the number is needed, because it arrives long after it began.
__device__ __forceinline__ float load_early(const float* from) {
    float value;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(from));
    return value;
}
