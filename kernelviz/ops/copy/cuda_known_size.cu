// `copy` of few elements, compiled for SIZE of them: no size is an argument, and nothing is computed about an end where all threads have the same. So
// small a copy takes as long as the launch, the fetch of instructions and one load. ELEMENT is unsigned short or unsigned: only bits are copied.
#include "access_bits.cuh"

// A thread has UNIT_BYTES, which divide 16; threads behind those with a whole unit have the remaining elements, one each.
#ifndef SIZE
#define SIZE 1
#define UNIT_BYTES 2
#define BLOCK_THREADS 32
#endif

constexpr unsigned UNIT = UNIT_BYTES / sizeof(ELEMENT), WHOLE = SIZE / UNIT, REST = SIZE % UNIT, ALL = WHOLE + REST;
using Bits = BitsOf<UNIT_BYTES>::Type;

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) copy_known_size(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out) {
    unsigned i = ALL > BLOCK_THREADS ? blockIdx.x * BLOCK_THREADS + threadIdx.x : threadIdx.x;
    if constexpr (ALL % BLOCK_THREADS != 0) {
        // Threads behind the last one copy the same again, so that no thread waits for a branch.
        i = i < ALL ? i : ALL - 1;
    }
    if (REST > 0 && __builtin_expect(i >= WHOLE, 0)) {
        const unsigned behind = WHOLE * UNIT + (i - WHOLE);
        out[behind] = __ldg(x + behind);
        return;
    }
    reinterpret_cast<Bits*>(out)[i] = __ldg(reinterpret_cast<const Bits*>(x) + i);
}
