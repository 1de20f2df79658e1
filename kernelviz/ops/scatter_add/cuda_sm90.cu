// Atomic additions of 16 bytes an instruction (PTX ISA, `red`: .v4 from compute capability 9.0 on). Rows are whole 16-byte vectors,
// except for the last kernel.
// INDEX: unsigned if it can index all vectors (a 64-bit division takes about 100 instructions), else unsigned long long.
#include "vec16.cuh"

struct alignas(4 * sizeof(ELEMENT)) Four {
    ELEMENT e[4];
};

// Four elements a thread, whatever their size, so that a warp's additions are contiguous. With eight elements of bf16, whose two
// instructions skip every second 16 bytes, it took 240 us instead of the 181 us of fp32. `sum` is x itself in fp32, otherwise
// sums that are zero at first; `fours`: groups of four a row.
extern "C" __global__ void __launch_bounds__(256) scatter_atomics_vec16(
    float* sum, const ELEMENT* __restrict__ src, const long long* __restrict__ ids, INDEX t, int fours) {
    const INDEX i = (INDEX)blockIdx.x * blockDim.x + threadIdx.x;
    const INDEX row = i / (INDEX)fours;
    if (row >= t) {
        return;
    }
    const Four four = reinterpret_cast<const Four*>(src)[i];
    float* to = sum + (ids[row] * fours + (long long)(i - row * (INDEX)fours)) * 4;
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(to_float(four.e[0])),
                 "f"(to_float(four.e[1])), "f"(to_float(four.e[2])), "f"(to_float(four.e[3]))
                 : "memory");
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
