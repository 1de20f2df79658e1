// Tensor core instructions of a warpgroup (sm_90a only). ELEMENT_PTX is "bf16" or "f16", which files that only have products of other formats need not define.
#pragma once
#include "wgmma_registers.cuh"

// An operand in shared memory, swizzled by 128 bytes, as wgmma describes it: address and two strides, in units of 16 bytes.
__device__ __forceinline__ unsigned long long wgmma_operand(unsigned address, unsigned leading_bytes, unsigned stride_bytes) {
    return (unsigned long long)((address & 0x3FFFF) >> 4) | (unsigned long long)(leading_bytes >> 4) << 16 |
           (unsigned long long)(stride_bytes >> 4) << 32 | 1ull << 62;
}

// The order of wgmma after writes to its registers or to shared memory.
__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Groups>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Groups) : "memory");
}

// After a wait: what reads these registers does so behind it, because the compiler believes that they change here.
template <int Count> __device__ __forceinline__ void order_registers(float (&d)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        asm volatile("" : "+f"(d[i])::"memory");
    }
}
template <int Count> __device__ __forceinline__ void order_registers(unsigned (&d)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
        asm volatile("" : "+r"(d[i])::"memory");
    }
}

#ifdef ELEMENT_PTX
// D (64×COLUMNS, fp32, in registers) += A (64×16) B (16×COLUMNS), both in shared memory. `add` 0 replaces D instead. A_BY_K: K is contiguous in A, else M;
// B_BY_K: K is contiguous in B, else N. Where it is not K, PTX calls the operand transposed: its immediate is 1. A0 to B1 number the operands after the sums.
#define DEFINE_WGMMA(COLUMNS, SUMS, A0, B0, ADD, A1, B1)                                                                       \
    template <bool A_BY_K, bool B_BY_K>                                                                                        \
    __device__ __forceinline__ void wgmma(float (&d)[SUMS], unsigned long long a, unsigned long long b, int add) {             \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #ADD ", 0;\n"                                                       \
                     "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16.f32." ELEMENT_PTX "." ELEMENT_PTX " {" SUMS_##SUMS      \
                     "}, %" #A0 ", %" #B0 ", p, 1, 1, %" #A1 ", %" #B1 ";\n}\n"                                                \
                     : FLOATS_##SUMS(d, 0)                                                                                     \
                     : "l"(a), "l"(b), "r"(add), "n"(A_BY_K ? 0 : 1), "n"(B_BY_K ? 0 : 1));                                    \
    }
DEFINE_WGMMA(8, 4, 4, 5, 6, 7, 8)
DEFINE_WGMMA(16, 8, 8, 9, 10, 11, 12)
DEFINE_WGMMA(32, 16, 16, 17, 18, 19, 20)
DEFINE_WGMMA(64, 32, 32, 33, 34, 35, 36)
DEFINE_WGMMA(80, 40, 40, 41, 42, 43, 44)
DEFINE_WGMMA(96, 48, 48, 49, 50, 51, 52)
DEFINE_WGMMA(112, 56, 56, 57, 58, 59, 60)
DEFINE_WGMMA(128, 64, 64, 65, 66, 67, 68)
DEFINE_WGMMA(144, 72, 72, 73, 74, 75, 76)
DEFINE_WGMMA(160, 80, 80, 81, 82, 83, 84)
DEFINE_WGMMA(176, 88, 88, 89, 90, 91, 92)
DEFINE_WGMMA(192, 96, 96, 97, 98, 99, 100)
DEFINE_WGMMA(208, 104, 104, 105, 106, 107, 108)
DEFINE_WGMMA(224, 112, 112, 113, 114, 115, 116)
DEFINE_WGMMA(240, 120, 120, 121, 122, 123, 124)
DEFINE_WGMMA(256, 128, 128, 129, 130, 131, 132)
#endif
