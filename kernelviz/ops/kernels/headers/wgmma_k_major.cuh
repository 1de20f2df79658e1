// wgmma (sm_90a only) for formats whose operands cannot be transposed: K is contiguous in A and in B. INSTRUCTION is shape and types, for
// example "m64n256k8.f32.tf32.tf32" or "m64n256k32.f32.e4m3.e4m3" (PTX ISA, "wgmma.mma_async"). Descriptors, fences and waits: wgmma.cuh.
#pragma once

#include "wgmma_registers.cuh"

// D (64×256, fp32, in registers) += A (64×K) B (K×256), both in shared memory, K being 32 bytes of the format.
__device__ __forceinline__ void wgmma_k_major(float (&d)[128], unsigned long long a, unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned." INSTRUCTION " {" SUMS_128 "}, %128, %129, 1, 1, 1;\n" : FLOATS_128(d, 0) : "l"(a), "l"(b));
}
