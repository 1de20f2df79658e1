// `batchnorm_relu` of few elements, one a thread, compiled for rows of COLUMNS elements and for EPS: the six pointers are the only arguments, so all
// of them are in one cache line of constants, and the compiler knows that no root is of a denormal number. ELEMENT is float, __half or __nv_bfloat16.
#include "conversions.cuh"
#include "one_element.cuh"
#include "relu.cuh"

#ifndef COLUMNS
#define COLUMNS 1
#define EPS 1e-05f
#endif
#ifndef SIZE
#define SIZE COLUMNS
#endif

__device__ __forceinline__ void normalise_one(
    const ELEMENT* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ variance, const float* __restrict__ w,
    const float* __restrict__ b, ELEMENT* __restrict__ y, INDEX i, INDEX c) {
    const float factor = rsqrtf(fabsf(variance[c]) + EPS) * w[c];
    y[i] = from_float<ELEMENT>(relu(fmaf(to_float(x[i]), factor, fmaf(-mean[c], factor, b[c]))));
}

// SIZE elements. The remainder that is the channel takes a product and a shift.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) batchnorm_relu_one_element(
    const ELEMENT* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ variance, const float* __restrict__ w,
    const float* __restrict__ b, ELEMENT* __restrict__ y) {
    const INDEX i = SIZE == 1 ? 0 : element_of_thread(SIZE - 1);
    normalise_one(x, mean, variance, w, b, y, i, i % COLUMNS);
}

// blockIdx.y is the row. Threads behind its end process its last element again.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) batchnorm_relu_row_of_blocks(
    const ELEMENT* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ variance, const float* __restrict__ w,
    const float* __restrict__ b, ELEMENT* __restrict__ y) {
    const INDEX c = element_of_thread(COLUMNS - 1);
    normalise_one(x, mean, variance, w, b, y, blockIdx.y * COLUMNS + c, c);
}
