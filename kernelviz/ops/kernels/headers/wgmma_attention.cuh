// Products of attention by a warpgroup (sm_90a only): scores of 64 queries, Q Kᵀ, and weighted sums of values, P V. ELEMENT_PTX is "bf16" or "f16".
// In Q and K, the head's dimension is contiguous; in V also, which makes V an operand whose N is contiguous (PTX: transposed). P is in registers:
// of a warp's 16 rows and 16 keys, a thread has four times two neighbouring elements, in the order in which two times eight columns of scores lie.
#pragma once

// wgmma.cuh also has the products of two operands in shared memory, which nothing here calls; its instructions need these names.
#define B_K_CONTIGUOUS 1
#include "wgmma.cuh"

#define SUMS_16 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15 "
#define SUMS_32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31 "
#define SUMS_40 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39 "
#define SUMS_48 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, " \
    "%40, %41, %42, %43, %44, %45, %46, %47 "
#define SUMS_64 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, " \
    "%40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, " \
    "%56, %57, %58, %59, %60, %61, %62, %63 "
#define SUMS_88 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, " \
    "%40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, " \
    "%56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, " \
    "%72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87 "
#define SUMS_96 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, " \
    "%40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, " \
    "%56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, " \
    "%72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, " \
    "%88, %89, %90, %91, %92, %93, %94, %95 "
#define SUMS_128 \
    "%0, %1, %2, %3, %4, %5, %6, %7, " \
    "%8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, " \
    "%40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, " \
    "%56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, " \
    "%72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, " \
    "%88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, " \
    "%104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, " \
    "%120, %121, %122, %123, %124, %125, %126, %127 "

#define FLOATS_8(d, i) \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define FLOATS_16(d, i) FLOATS_8(d, i), FLOATS_8(d, i + 8)
#define FLOATS_32(d, i) FLOATS_16(d, i), FLOATS_16(d, i + 16)
#define FLOATS_40(d, i) FLOATS_32(d, i), FLOATS_8(d, i + 32)
#define FLOATS_48(d, i) FLOATS_32(d, i), FLOATS_16(d, i + 32)
#define FLOATS_64(d, i) FLOATS_32(d, i), FLOATS_32(d, i + 32)
#define FLOATS_88(d, i) FLOATS_64(d, i), FLOATS_8(d, i + 64), FLOATS_8(d, i + 72), FLOATS_8(d, i + 80)
#define FLOATS_96(d, i) FLOATS_64(d, i), FLOATS_32(d, i + 64)
#define FLOATS_128(d, i) FLOATS_64(d, i), FLOATS_64(d, i + 64)

// D (64×KEYS, fp32, in registers) += A (64×16) Bᵀ (B: KEYS×16), both in shared memory. `add` 0 replaces D instead. A0, A1 and A2 number the operands
// after the sums.
#define DEFINE_SCORES(KEYS, SUMS, A0, A1, A2)                                                                            \
    __device__ __forceinline__ void wgmma_scores(float (&d)[SUMS], unsigned long long a, unsigned long long b, int add) { \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #A2 ", 0;\n"                                                   \
                     "wgmma.mma_async.sync.aligned.m64n" #KEYS "k16.f32." ELEMENT_PTX "." ELEMENT_PTX " {" SUMS_##SUMS    \
                     "}, %" #A0 ", %" #A1 ", p, 1, 1, 0, 0;\n}\n"                                                         \
                     : FLOATS_##SUMS(d, 0)                                                                                \
                     : "l"(a), "l"(b), "r"(add));                                                                         \
    }
DEFINE_SCORES(64, 32, 32, 33, 34)
DEFINE_SCORES(80, 40, 40, 41, 42)
DEFINE_SCORES(96, 48, 48, 49, 50)
DEFINE_SCORES(128, 64, 64, 65, 66)
DEFINE_SCORES(176, 88, 88, 89, 90)
DEFINE_SCORES(192, 96, 96, 97, 98)

// D (64×DIMENSION, fp32, in registers) += A (64×16, in registers) B (16×DIMENSION, in shared memory, DIMENSION contiguous).
#define DEFINE_VALUES(DIMENSION, SUMS, A0, A1, A2, A3, B0)                                                                  \
    __device__ __forceinline__ void wgmma_values(float (&d)[SUMS], const unsigned* a, unsigned long long b) {               \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #DIMENSION "k16.f32." ELEMENT_PTX "." ELEMENT_PTX " {" SUMS_##SUMS \
                     "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B0 ", 1, 1, 1, 1;\n"                                 \
                     : FLOATS_##SUMS(d, 0)                                                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                                 \
    }
DEFINE_VALUES(64, 32, 32, 33, 34, 35, 36)
DEFINE_VALUES(128, 64, 64, 65, 66, 67, 68)
DEFINE_VALUES(256, 128, 128, 129, 130, 131, 132)

// D (64×COLUMNS, fp32, in registers) += Aᵀ (A: 16×64) B (16×COLUMNS), both in shared memory, in which M and N are contiguous. `add` 0 replaces D.
#define DEFINE_GRADIENT(COLUMNS, SUMS, A0, A1, A2)                                                                         \
    __device__ __forceinline__ void wgmma_gradient(float (&d)[SUMS], unsigned long long a, unsigned long long b, int add) { \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #A2 ", 0;\n"                                                     \
                     "wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16.f32." ELEMENT_PTX "." ELEMENT_PTX " {" SUMS_##SUMS   \
                     "}, %" #A0 ", %" #A1 ", p, 1, 1, 1, 1;\n}\n"                                                           \
                     : FLOATS_##SUMS(d, 0)                                                                                  \
                     : "l"(a), "l"(b), "r"(add));                                                                           \
    }
DEFINE_GRADIENT(32, 16, 16, 17, 18)
DEFINE_GRADIENT(64, 32, 32, 33, 34)
DEFINE_GRADIENT(128, 64, 64, 65, 66)

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
