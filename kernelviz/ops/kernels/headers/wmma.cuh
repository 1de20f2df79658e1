// The instructions wmma of the PTX ISA, sm_80 and later: a warp loads fragments of row-major matrices from shared memory, multiplies them, and stores
// the sums. Which thread has which element of a fragment is not specified. PTX ISA, "Warp-level matrix fragment" (the numbers of registers).
// nvcuda::wmma of CUDA's <mma.h> has the same, but <mma.h> includes a header of another wheel (nvidia-cuda-crt); and it loads bf16 and tf32 from
// generic addresses, so that NVRTC 13.0 compiles the loads to LD instead of LDSM and LDS.
// tests/ops/cuda/wmma.cuh does the same with the processor, so that kernels can be tested without a GPU.
#pragma once
#include "mma.cuh"

__device__ __forceinline__ unsigned address_in_shared(const void* address) { return static_cast<unsigned>(__cvta_generic_to_shared(address)); }

// Products of fragments of 16×DEPTH (A) and DEPTH×16 (B) elements, in fp32. All addresses are the same in each thread of the warp and multiples of 32
// bytes; `pitch`, the distance of two rows in elements, is a multiple of 16 bytes. The registers of a fragment hold 2 elements each, or 1 of tf32;
// a fragment of fp16 has each element twice.
template <typename ELEMENT_TYPE> struct Wmma;
template <> struct Wmma<__nv_bfloat16> {
    static constexpr int DEPTH = 16, REGISTERS = 4;
    static __device__ __forceinline__ void load_a(unsigned (&to)[REGISTERS], const __nv_bfloat16* from, int pitch) {
        asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address_in_shared(from)), "r"(pitch)
                     : "memory");
    }
    static __device__ __forceinline__ void load_b(unsigned (&to)[REGISTERS], const __nv_bfloat16* from, int pitch) {
        asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address_in_shared(from)), "r"(pitch)
                     : "memory");
    }
    static __device__ __forceinline__ void multiply_add(float (&d)[8], const unsigned (&a)[REGISTERS], const unsigned (&b)[REGISTERS]) {
        asm("wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, "
            "{%8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3, %4, %5, %6, %7};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
    }
};
template <> struct Wmma<__half> {
    static constexpr int DEPTH = 16, REGISTERS = 8;
    static __device__ __forceinline__ void load_a(unsigned (&to)[REGISTERS], const __half* from, int pitch) {
        asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]), "=r"(to[4]), "=r"(to[5]), "=r"(to[6]), "=r"(to[7])
                     : "r"(address_in_shared(from)), "r"(pitch)
                     : "memory");
    }
    static __device__ __forceinline__ void load_b(unsigned (&to)[REGISTERS], const __half* from, int pitch) {
        asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.shared.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]), "=r"(to[4]), "=r"(to[5]), "=r"(to[6]), "=r"(to[7])
                     : "r"(address_in_shared(from)), "r"(pitch)
                     : "memory");
    }
    static __device__ __forceinline__ void multiply_add(float (&d)[8], const unsigned (&a)[REGISTERS], const unsigned (&b)[REGISTERS]) {
        asm("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11, %12, %13, %14, %15}, "
            "{%16, %17, %18, %19, %20, %21, %22, %23}, {%0, %1, %2, %3, %4, %5, %6, %7};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]), "r"(b[1]), "r"(b[2]),
              "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
    }
};
// fp32 numbers; each register must be rounded after the load (`rounded_to_tf32`), because the tensor core would cut off the last 13 bits.
template <> struct Wmma<float> {
    static constexpr int DEPTH = 8, REGISTERS = 4;
    static __device__ __forceinline__ void load_a(unsigned (&to)[REGISTERS], const float* from, int pitch) {
        asm volatile("wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address_in_shared(from)), "r"(pitch)
                     : "memory");
    }
    static __device__ __forceinline__ void load_b(unsigned (&to)[REGISTERS], const float* from, int pitch) {
        asm volatile("wmma.load.b.sync.aligned.row.m16n16k8.shared.tf32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address_in_shared(from)), "r"(pitch)
                     : "memory");
    }
    static __device__ __forceinline__ void multiply_add(float (&d)[8], const unsigned (&a)[REGISTERS], const unsigned (&b)[REGISTERS]) {
        asm("wmma.mma.sync.aligned.row.row.m16n16k8.f32.tf32.tf32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, "
            "{%8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3, %4, %5, %6, %7};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
    }
};

// Sums of 16×16 elements to shared memory; `STEP` is the depth of the products that they are sums of.
template <int STEP> __device__ __forceinline__ void store_sums(float* to, const float (&sums)[8], int pitch) {
    static_assert(STEP == 16 || STEP == 8);
    if constexpr (STEP == 16) {
        asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;" ::"r"(
                         address_in_shared(to)),
                     "f"(sums[0]), "f"(sums[1]), "f"(sums[2]), "f"(sums[3]), "f"(sums[4]), "f"(sums[5]), "f"(sums[6]), "f"(sums[7]), "r"(pitch)
                     : "memory");
    } else {
        asm volatile("wmma.store.d.sync.aligned.row.m16n16k8.shared.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;" ::"r"(
                         address_in_shared(to)),
                     "f"(sums[0]), "f"(sums[1]), "f"(sums[2]), "f"(sums[3]), "f"(sums[4]), "f"(sums[5]), "f"(sums[6]), "f"(sums[7]), "r"(pitch)
                     : "memory");
    }
}
