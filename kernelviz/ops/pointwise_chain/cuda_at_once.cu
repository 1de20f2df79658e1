// The chain relu(x s + b) of STEPS steps for few elements: a thread loads its elements and the s and b of all steps at once. Such problems take
// the latency of their loads, and k loads one after the other take k times as long. Rows of any length are walked as one: a thread has UNIT
// adjacent elements of x, a power of two of at most 16 bytes that divides the length of a row. PACKED: 16-bit arithmetic where UNIT is even.
// ELEMENT is float, __half or __nv_bfloat16.
#include "access_bits.cuh"
#include "conversions.cuh"
#include "relu.cuh"

#ifndef STEPS
#define STEPS 1
#define UNIT 1
#endif
using Bits = typename BitsOf<UNIT * sizeof(ELEMENT)>::Type;
struct alignas(sizeof(Bits)) Elements {
    ELEMENT of[UNIT];
};

// What has UNIT elements, loaded by one instruction.
__device__ __forceinline__ const Elements& elements_of(const Bits& bits) { return reinterpret_cast<const Elements&>(bits); }

// Remainder by n without a division, as in cuda_flat.cu.
__device__ __forceinline__ int remainder_of(int at, int n, unsigned reciprocal, int shift) {
    return reciprocal ? at - (int)(__umulhi(at, reciprocal) >> (shift - 1)) * n : 0;
}

// Four blocks an SM: for more of them, NVRTC kept fewer registers, and loaded some factors after the first steps. `last`: the last unit of x; `units`: of a row.
extern "C" __global__ void __launch_bounds__(128, 4) chain_at_once(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ s, const ELEMENT* __restrict__ b, ELEMENT* __restrict__ out, int last, int units,
    unsigned reciprocal, int shift) {
    // Threads behind the last unit process it again, so that no load waits for a branch.
    const int unit = min((int)(blockIdx.x * 128 + threadIdx.x), last);
    Bits result = reinterpret_cast<const Bits*>(x)[unit];
    const int column = remainder_of(unit, units, reciprocal, shift);
    Bits scales[STEPS], shifts[STEPS];
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        scales[step] = reinterpret_cast<const Bits*>(s)[step * units + column];
        shifts[step] = reinterpret_cast<const Bits*>(b)[step * units + column];
    }
#if PACKED && UNIT > 1
    // Two elements an instruction: product, sum and relu are one HFMA2.RELU, rounded to 16 bits at the end of each step.
    using Pair = typename PackedPair<ELEMENT>::type;
    Pair* v = reinterpret_cast<Pair*>(&result);
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
        for (int i = 0; i < UNIT / 2; ++i) {
            v[i] = __hfma2_relu(v[i], reinterpret_cast<const Pair*>(&scales[step])[i], reinterpret_cast<const Pair*>(&shifts[step])[i]);
        }
    }
#else
    Elements& elements = reinterpret_cast<Elements&>(result);
#pragma unroll
    for (int i = 0; i < UNIT; ++i) {
        float v = to_float(elements.of[i]);
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            v = relu(fmaf(v, to_float(elements_of(scales[step]).of[i]), to_float(elements_of(shifts[step]).of[i])));
        }
        elements.of[i] = from_float<ELEMENT>(v);
    }
#endif
    reinterpret_cast<Bits*>(out)[unit] = result;
}
