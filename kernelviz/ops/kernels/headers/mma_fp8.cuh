// Products of 8-bit floats (e4m3) by one warp, on tensor cores of sm_89 and later.
// tests/ops/cuda/mma_fp8.cuh does the same with the processor, so that kernels can be tested without a GPU.
#pragma once
#include "mma.cuh"

// D (16×8, fp32) += A (16 rows of 32 numbers) B (8 columns of 32 numbers), with the fragments of `TensorCore` in mma.cuh.
__device__ __forceinline__ void multiply_add_fp8(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
