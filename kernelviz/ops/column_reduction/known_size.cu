// CUDA C++ kernel of `column_sum` of few rows, compiled for KNOWN_M rows of KNOWN_N columns. ELEMENT is float, __half or __nv_bfloat16; sums
// are in fp32. So small a matrix takes as long as the launch and the fetch of instructions, so there are few of them: no size is an
// argument, and all rows are in flight at once.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "access_bits.cuh"
#include "loads_first.cuh"
#include "one_element.cuh"

#ifndef KNOWN_M
#define KNOWN_M 1
#define KNOWN_N 1
#endif

// Without a smallest number of blocks in the launch bounds, ptxas uses 32 registers, and some loads of more than 18 rows wait for the first ones.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 1) column_known_size(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out) {
    const INDEX column = element_of_thread(KNOWN_N - 1);
    ELEMENT* to = address_now(out + column);
    using Bits = BitsOf<sizeof(ELEMENT)>::Type;
    Bits read[KNOWN_M];
#pragma unroll
    for (int row = 0; row < KNOWN_M; ++row) {
        read[row] = __ldg(reinterpret_cast<const Bits*>(x) + row * KNOWN_N + column);
    }
    loads_first(read);
    // Four sums, so that of up to 32 rows no more than ten additions wait for each other.
    constexpr int SUMS = KNOWN_M < 4 ? KNOWN_M : 4;
    float sums[SUMS];
#pragma unroll
    for (int row = 0; row < KNOWN_M; ++row) {
        const float value = static_cast<float>(reinterpret_cast<const ELEMENT&>(read[row]));
        sums[row % SUMS] = row < SUMS ? value : sums[row % SUMS] + value;
    }
    float sum = sums[0];
#pragma unroll
    for (int s = 1; s < SUMS; ++s) {
        sum += sums[s];
    }
    *to = static_cast<ELEMENT>(sum);
}
