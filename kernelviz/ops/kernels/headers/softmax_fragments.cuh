// What a softmax between two products of fragments needs beside mma.cuh: numbers of other threads of the warp, exponentials, and a transposed fragment.
// tests/ops/cuda/softmax_fragments.cuh does the same with the processor.
#pragma once
#include "skinny.cuh"

// The number of the thread of the warp whose number differs in the bits of `mask`.
__device__ __forceinline__ float of_other_lane(float value, int mask) { return __shfl_xor_sync(0xffffffffu, value, mask); }
__device__ __forceinline__ int of_lane(int value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
// 2^x, 0 for -inf.
__device__ __forceinline__ float power_of_two(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
// A matrix of 8 rows of 8 elements of 16 bits, of which thread t has elements 2 (t % 4) and 2 (t % 4) + 1 of row t / 4, becomes its transpose.
__device__ __forceinline__ unsigned transposed(unsigned pair) {
    unsigned result;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
    return result;
}

// Shared memory as one thread uses it, without a partner in the warp.
__device__ __forceinline__ void write_one(unsigned to, float value) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(value) : "memory"); }
__device__ __forceinline__ float read_one(unsigned from) {
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(from) : "memory");
    return value;
}
__device__ __forceinline__ float4 read_four(unsigned from) {
    float4 value;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(from)
                 : "memory");
    return value;
}

// As `is_last_to_arrive`, with fences of one thread: what all threads wrote before a barrier is visible with what that thread writes after it (PTX ISA,
// "Memory consistency model": causality order is transitive).
__device__ __forceinline__ bool is_last_block(unsigned* arrived, unsigned blocks) {
    __shared__ bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(arrived, 1u) == blocks - 1;
        if (is_last) {
            *arrived = 0;
            __threadfence();
        }
    }
    __syncthreads();
    return is_last;
}
