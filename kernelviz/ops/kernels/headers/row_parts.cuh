// What kernels that reduce rows of a tile in registers need beside products: a number of another lane, 2^v and ln v.
// tests/ops/cuda/row_parts.cuh does the same with the processor, so that kernels can be tested without a GPU.
#pragma once

// The number that the thread has whose number in the warp differs in the bits of `mask`.
__device__ __forceinline__ float of_other_lane(float value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }

// 2^v with an error of at most 2 units in the last place; tiny results are flushed to zero (PTX ISA, ex2.approx.ftz).
__device__ __forceinline__ float exp2_fast(float v) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(v));
    return power;
}

__device__ __forceinline__ float natural_logarithm(float v) { return logf(v); }
