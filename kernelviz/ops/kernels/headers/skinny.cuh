// What matrix products of a few rows need beside mma.cuh: loads of what is read once, numbers of 16 bits in fp32, and sums of parts of K that
// several blocks computed. tests/ops/cuda/skinny.cuh does the same with the processor.
#pragma once
#include "mma.cuh"

// Loads of numbers that no thread reads again: L1 is left to those that are. `volatile` keeps them together: the compiler would move each one to
// where its number is used, and fewer were in flight.
__device__ __forceinline__ void load_once(uint4& value, const char* from) {
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from));
}
__device__ __forceinline__ void load_once(uint2& value, const char* from) {
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "l"(from));
}
__device__ __forceinline__ void load_once(unsigned& value, const char* from) {
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.u32 %0, [%1];" : "=r"(value) : "l"(from));
}
__device__ __forceinline__ void load_once(unsigned short& value, const char* from) {
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.u16 %0, [%1];" : "=h"(value) : "l"(from));
}

// The two numbers of 16 bits in a register, the lower half first.
template <typename ELEMENT_TYPE> struct Halves;
template <> struct Halves<__nv_bfloat16> {
    static __device__ __forceinline__ void split(unsigned bits, float& low, float& high) {
        low = __uint_as_float(bits << 16);
        high = __uint_as_float(bits & 0xffff0000u);
    }
};
template <> struct Halves<__half> {
    static __device__ __forceinline__ void split(unsigned bits, float& low, float& high) {
        const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&bits));
        low = both.x;
        high = both.y;
    }
};

// The sum of `value` and that of the thread whose number in the warp differs in the bits of `mask`.
__device__ __forceinline__ float sum_of_two_lanes(float value, int mask) { return value + __shfl_xor_sync(0xffffffffu, value, mask); }

// Whether all other blocks of `parts` have called this before; then what they had written is visible. `arrived` is zero before and afterwards.
__device__ __forceinline__ bool is_last_to_arrive(unsigned* arrived, unsigned parts) {
    __shared__ bool is_last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = atomicAdd(arrived, 1u) == parts - 1;
        if (is_last) {
            *arrived = 0;
        }
    }
    __syncthreads();
    if (is_last) {
        __threadfence();
    }
    return is_last;
}

// The sum of `parts` numbers, or of vectors of four, which are `distance` apart: in their order, several loads at a time.
__device__ __forceinline__ float sum_of_parts(const float* from, long long distance, int parts) {
    float sum = 0.0f;
#pragma unroll 1
    for (int first = 0; first < parts; first += 4) {
        float numbers[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            numbers[i] = first + i < parts ? __ldcg(from + (first + i) * distance) : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            sum += numbers[i];
        }
    }
    return sum;
}
__device__ __forceinline__ float4 sum_of_parts(const float4* from, long long distance, int parts) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (int first = 0; first < parts; first += 8) {
        float4 numbers[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            numbers[i] = first + i < parts ? __ldcg(from + (first + i) * distance) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            sum = make_float4(sum.x + numbers[i].x, sum.y + numbers[i].y, sum.z + numbers[i].z, sum.w + numbers[i].w);
        }
    }
    return sum;
}
