// Tensor cores of sm_80 and later, as one warp uses them: asynchronous copies to shared memory (cp.async), fragments (ldmatrix) and products
// of fragments (mma.sync). Shared memory is addressed by 32-bit numbers. PTX ISA, "Warp-level matrix instructions" and "cp.async".
// tests/ops/cuda/mma.cuh does the same with the processor, so that kernels can be tested without a GPU.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Address of the dynamic shared memory.
__device__ __forceinline__ unsigned shared_memory() {
    extern __shared__ __align__(128) unsigned char memory[];
    return static_cast<unsigned>(__cvta_generic_to_shared(memory));
}

// Copy BYTES (4, 8 or 16; both addresses are multiples of it), or fill with zeros if not `valid`: then nothing is read. 16 bytes bypass L1.
template <int BYTES> __device__ __forceinline__ void copy_async(unsigned to, const void* from, bool valid) {
    const int bytes = valid ? BYTES : 0;
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(bytes) : "memory");
    }
}
// The copies that this thread began since the last call are one group.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Wait until all groups of this thread but the last PENDING have arrived.
template <int PENDING> __device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ void store_shared(unsigned to, unsigned short value) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(value) : "memory");
}
__device__ __forceinline__ void store_shared(unsigned to, unsigned value) {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(value) : "memory");
}
__device__ __forceinline__ void load_shared(unsigned short& value, unsigned from) {
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(from) : "memory");
}
__device__ __forceinline__ void load_shared(unsigned& value, unsigned from) {
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(from) : "memory");
}
__device__ __forceinline__ void load_shared(uint2& value, unsigned from) {
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "r"(from) : "memory");
}
__device__ __forceinline__ void load_shared(uint4& value, unsigned from) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "r"(from)
                 : "memory");
}

// Four matrices of 8 rows of 16 bytes. Thread t gives the address of row t % 8 of matrix t / 8; of each matrix it gets the 4 bytes t % 4 of row
// t / 4, in one register.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
}
// The same of matrices of 2-byte elements, transposed: a thread gets elements 2 (t % 4) and 2 (t % 4) + 1 of column t / 4.
__device__ __forceinline__ void load_matrices_transposed(unsigned (&to)[4], unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
}

// D (16×8, fp32) += A (16 rows of 32 bytes) B (8 columns of 32 bytes). With g = t / 4 and q = t % 4, thread t has of A the 4 bytes q of rows g and
// g + 8 (a[0], a[1]) and the same 16 bytes further (a[2], a[3]); of B the 4 bytes q of column g and the same 16 bytes further; of D columns 2q and
// 2q + 1 of row g (d[0], d[1]) and of row g + 8 (d[2], d[3]).
template <typename ELEMENT_TYPE> struct TensorCore;
template <> struct TensorCore<__nv_bfloat16> {
    static __device__ __forceinline__ void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    // Two numbers rounded to nearest, the first in the lower half.
    static __device__ __forceinline__ unsigned pair(float low, float high) {
        const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
        return *reinterpret_cast<const unsigned*>(&both);
    }
};
template <> struct TensorCore<__half> {
    static __device__ __forceinline__ void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    static __device__ __forceinline__ unsigned pair(float low, float high) {
        const __half2 both = __floats2half2_rn(low, high);
        return *reinterpret_cast<const unsigned*>(&both);
    }
};
// fp32 numbers that were rounded to tf32 before (`rounded_to_tf32`); the tensor core would cut off their last 13 bits.
template <> struct TensorCore<float> {
    static __device__ __forceinline__ void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
};
// Bits of an fp32 number rounded to nearest tf32, ties away from zero.
__device__ __forceinline__ unsigned rounded_to_tf32(unsigned bits) {
    unsigned rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
    return rounded;
}
