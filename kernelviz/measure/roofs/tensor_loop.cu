// Loops of tensor-core instructions whose operands are in registers and shared memory only: the rate that the tensor cores reach
// without memory. The operands are the numbers of `numbers`, which the host filled with normal data of the format. FORMAT: 0 bf16,
// 1 fp16, 2 tf32, 3 fp8 (E4M3).
//
// The accumulators grow by the same sum in each round, as those of a long product do. `guard` is NaN, so no sum of them equals it,
// which the compiler does not know: it cannot remove the products.

constexpr int STEPS = 4;

#ifdef WARPGROUPS
// wgmma, sm_90a: each warpgroup multiplies its own A (64 rows) by the B (256 columns) of its block. A stage has 128 bytes of K in each
// row, swizzled by 128 bytes, and an instruction takes 32 of them. The numbers are independent of each other, so that the order in
// which they lie in shared memory does not matter.
#if FORMAT == 1
#define ELEMENT_PTX "f16"
#else
#define ELEMENT_PTX "bf16"
#endif
#include "wgmma.cuh"
#if FORMAT == 2
#define INSTRUCTION "m64n256k8.f32.tf32.tf32"
#include "wgmma_k_major.cuh"
#elif FORMAT == 3
#define INSTRUCTION "m64n256k32.f32.e4m3.e4m3"
#include "wgmma_k_major.cuh"
#endif

constexpr int STAGES = 2;
constexpr int A_BYTES = 64 * 128;
constexpr int B_BYTES = 256 * 128;

__device__ __forceinline__ void multiply(float (&sums)[128], unsigned a, unsigned b) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        const unsigned long long of_a = wgmma_operand(a + step * 32, 16, 1024), of_b = wgmma_operand(b + step * 32, 16, 1024);
#if FORMAT < 2
        wgmma<true, true>(sums, of_a, of_b, 1);
#else
        wgmma_k_major(sums, of_a, of_b);
#endif
    }
}

// STAGES × (WARPGROUPS × A_BYTES + B_BYTES) bytes of dynamic shared memory. A warpgroup issues rounds × STAGES × STEPS instructions.
extern "C" __global__ void __launch_bounds__(128 * WARPGROUPS, 1) kernelviz_wgmma_loop(
    const uint4* numbers, int rounds, float guard, float* sink) {
    extern __shared__ __align__(1024) uint4 operands[];
    constexpr int VECTORS = STAGES * (WARPGROUPS * A_BYTES + B_BYTES) / 16;
    for (int i = threadIdx.x; i < VECTORS; i += 128 * WARPGROUPS) {
        operands[i] = numbers[i];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned b = (unsigned)__cvta_generic_to_shared(operands);
    const unsigned a = b + STAGES * B_BYTES + threadIdx.x / 128 * STAGES * A_BYTES;
    float sums[128] = {};
    wgmma_fence();
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int stage = 0; stage < STAGES; ++stage) {
            multiply(sums, a + stage * A_BYTES, b + stage * B_BYTES);
            wgmma_commit();
            wgmma_wait<1>();
        }
    }
    wgmma_wait<0>();
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 128; ++i) {
        sum += sums[i];
    }
    if (sum == guard) {
        *sink = sum;
    }
}
#else
// mma.sync, sm_80 and later: each warp multiplies TILES_M fragments of A by TILES_N of B, all in registers, so that TILES_M × TILES_N
// instructions do not depend on each other.
#include "mma.cuh"

constexpr int TILES_M = 2, TILES_N = 4;

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if FORMAT == 0
    TensorCore<__nv_bfloat16>::multiply_add(d, a, b);
#elif FORMAT == 1
    TensorCore<__half>::multiply_add(d, a, b);
#elif FORMAT == 2
    TensorCore<float>::multiply_add(d, a, b);
#else
    asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// A warp issues rounds × STEPS × TILES_M × TILES_N instructions. Each of 256 threads has FRAGMENTS registers of `numbers`.
extern "C" __global__ void __launch_bounds__(256) kernelviz_mma_loop(
    const unsigned* numbers, int rounds, float guard, float* sink) {
    unsigned a[TILES_M][4], b[TILES_N][2];
    constexpr int FRAGMENTS = TILES_M * 4 + TILES_N * 2;
    const unsigned* mine = numbers + threadIdx.x * FRAGMENTS;
#pragma unroll
    for (int m = 0; m < TILES_M; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) a[m][i] = mine[m * 4 + i];
    }
#pragma unroll
    for (int n = 0; n < TILES_N; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) b[n][i] = mine[TILES_M * 4 + n * 2 + i];
    }
    float sums[TILES_M][TILES_N][4] = {};
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
#pragma unroll
            for (int m = 0; m < TILES_M; ++m) {
#pragma unroll
                for (int n = 0; n < TILES_N; ++n) {
                    multiply(sums[m][n], a[m], b[n]);
                }
            }
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int m = 0; m < TILES_M; ++m) {
#pragma unroll
        for (int n = 0; n < TILES_N; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) sum += sums[m][n][i];
        }
    }
    if (sum == guard) {
        *sink = sum;
    }
}
#endif
