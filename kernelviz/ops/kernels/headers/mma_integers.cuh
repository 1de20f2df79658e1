// Products of bytes on tensor cores (sm_80 and later), and what brings numbers to bytes and sums to fp32. tests/ops/cuda/mma_integers.cuh does the same
// with the processor.
#pragma once

// The fp32 number 1.5 * 2^23 and its bits: bits and a whole number i of less than 2^22 are the bits of the fp32 number 1.5 * 2^23 + i.
constexpr float INTEGERS_AS_FLOATS = 12582912.0f;
constexpr int INTEGER_ZERO = 0x4b400000;

// D (16 x 8, integers of 32 bits) += A (16 rows of 32 bytes without a sign) B (8 columns of 32 signed bytes), in the order of `TensorCore` (mma.cuh).
__device__ __forceinline__ void multiply_add_bytes(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// The sum and four signed bytes.
__device__ __forceinline__ int add_bytes(int sum, unsigned bytes) { return __dp4a(int(bytes), 0x01010101, sum); }
// Bytes of the eight of `low` and `high`; which, each hexadecimal digit of `order` says, the last one first.
__device__ __forceinline__ unsigned permute_bytes(unsigned low, unsigned high, unsigned order) { return __byte_perm(low, high, order); }
// a * b + c, rounded once.
__device__ __forceinline__ float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
