// Numbers rounded to 8 bits, four at a time.
#pragma once
#include <cuda_fp8.h>

// Four numbers as int8 (IS_INT8) or as fp8 (E4M3), rounded to nearest, ties to even. Numbers that are too large become the largest one:
// an element divided by its scale may exceed it by a rounding error of fp32.
template <bool IS_INT8> __device__ __forceinline__ unsigned pack_8_bit(float a, float b, float c, float d) {
    unsigned packed;
    if (IS_INT8) {
        asm("{.reg .u32 high;\n\t"
            "cvt.pack.sat.s8.s32.b32 high, %1, %2, 0;\n\t"
            "cvt.pack.sat.s8.s32.b32 %0, %3, %4, high;}"
            : "=r"(packed)
            : "r"(__float2int_rn(d)), "r"(__float2int_rn(c)), "r"(__float2int_rn(b)), "r"(__float2int_rn(a)));
    } else {
        const unsigned low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
        packed = low | (unsigned)__nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, __NV_E4M3) << 16;
    }
    return packed;
}
