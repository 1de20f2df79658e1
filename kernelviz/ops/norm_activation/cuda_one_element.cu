// `batchnorm_relu` of few elements, one a thread, for rows of COLUMNS elements only: the remainder that is the channel then takes a product and a
// shift. ELEMENT is float, __half or __nv_bfloat16.
#include "conversions.cuh"
#include "one_element.cuh"
#include "relu.cuh"

#ifndef COLUMNS
#define COLUMNS 1
#endif

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) batchnorm_relu_one_element(
    const ELEMENT* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ variance, const float* __restrict__ w,
    const float* __restrict__ b, ELEMENT* __restrict__ y, INDEX last, float eps) {
    const INDEX i = element_of_thread(last), c = i % COLUMNS;
    const float factor = rsqrtf(fabsf(variance[c]) + eps) * w[c];
    y[i] = from_float<ELEMENT>(relu(fmaf(to_float(x[i]), factor, fmaf(-mean[c], factor, b[c]))));
}
