// Single instructions where CUDA's functions add others for denormal numbers, for kernels of about 1 us: each cache line of them is a fetch.
// tests/ops/cuda/approximate.cuh does the same with the processor.
#pragma once

// The larger number, or NaN if one is NaN.
__device__ __forceinline__ float larger(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
// 1 / √v and 1 / v with an error of about one unit in the last place; denormal numbers count as 0.
__device__ __forceinline__ float reciprocal_root(float v) {
    float result;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
}
__device__ __forceinline__ float reciprocal(float v) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
    return result;
}
