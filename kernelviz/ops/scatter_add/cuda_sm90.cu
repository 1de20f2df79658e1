// Atomic additions of several elements an instruction (PTX ISA, `red`: .v2 and .v4 of f32 from compute capability 9.0 on). Rows are whole groups of
// elements, except for the last kernel.
// INDEX: unsigned if it can index all groups (a 64-bit division takes about 100 instructions), else unsigned long long.
// GROUP: elements of a thread, 4 or 2.
#include "vec16.cuh"

#ifndef GROUP
#define GROUP 4
#endif

struct alignas(GROUP * sizeof(ELEMENT)) Group {
    ELEMENT e[GROUP];
};

__device__ __forceinline__ void add(float* to, const float (&values)[4]) {
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3])
                 : "memory");
}
__device__ __forceinline__ void add(float* to, const float (&values)[2]) {
    asm volatile("red.relaxed.gpu.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(values[0]), "f"(values[1]) : "memory");
}

// Four elements a thread, whatever their size, so that a warp's additions are contiguous. With eight elements of bf16, whose two
// instructions skip every second 16 bytes, it took 240 us instead of the 181 us of fp32. Two where rows are not whole groups of four. `sum` is x
// itself in fp32, otherwise sums that are zero at first; `groups` of a row.
extern "C" __global__ void __launch_bounds__(256) scatter_atomics_vec16(
    float* sum, const ELEMENT* __restrict__ src, const long long* __restrict__ ids, INDEX t, int groups) {
    const INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX row = i / (INDEX)groups;
    if (row >= t) {
        return;
    }
    const Group group = reinterpret_cast<const Group*>(src)[i];
    float values[GROUP];
#pragma unroll
    for (int e = 0; e < GROUP; ++e) {
        values[e] = to_float(group.e[e]);
    }
    add(sum + (ids[row] * groups + (long long)(i - row * (INDEX)groups)) * GROUP, values);
}

#if NARROW
extern "C" __global__ void __launch_bounds__(256) scatter_atomics_16bit(
    ELEMENT* x, const ELEMENT* __restrict__ src, const long long* __restrict__ ids, INDEX t, int vectors) {
    const INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX row = i / (INDEX)vectors;
    if (row >= t) {
        return;
    }
    const uint4 vec = reinterpret_cast<const uint4*>(src)[i];
    uint4* to = reinterpret_cast<uint4*>(x) + ids[row] * vectors + (long long)(i - row * (INDEX)vectors);
    asm volatile("red.relaxed.gpu.global.add.noftz.v4." PACKED " [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(vec.x), "r"(vec.y),
                 "r"(vec.z), "r"(vec.w)
                 : "memory");
}

// Rows that are not whole vectors: one addition an instruction.
extern "C" __global__ void __launch_bounds__(256) scatter_atomics_16bit_scalar(
    ELEMENT* x, const ELEMENT* __restrict__ src, const long long* __restrict__ ids, INDEX t, int d) {
    const INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX row = i / (INDEX)d;
    if (row < t) {
        atomicAdd(x + ids[row] * d + (long long)(i - row * (INDEX)d), src[i]);
    }
}
#endif
