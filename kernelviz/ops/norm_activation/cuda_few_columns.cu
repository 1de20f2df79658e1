// `batchnorm_relu` of many rows of one, two or four channels, of which a 16-byte vector has whole rows: the channels of each element of it are known
// when this is compiled, for COLUMNS and for EPS. ELEMENT is float, __half or __nv_bfloat16.
#include "adjacent_sum.cuh"
#include "relu.cuh"

#ifndef COLUMNS
#define COLUMNS 1
#define EPS 1e-05f
#endif

using T = ELEMENT;
using W = Vec16<T>;
constexpr int WIDTH = W::WIDTH, THREADS = 256;
static_assert(WIDTH % COLUMNS == 0);

// One number of each channel.
using Channels = Adjacent<float, COLUMNS>;
__device__ __forceinline__ Channels channels(const float* __restrict__ from) {
    return load_whole(reinterpret_cast<const Channels*>(from));
}

// A thread has one vector, and one of the elements behind the last whole vector.
extern "C" __global__ void __launch_bounds__(THREADS) batchnorm_relu_few_columns(
    const T* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ variance, const float* __restrict__ w,
    const float* __restrict__ b, T* __restrict__ y, long long count) {
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x, whole = count / WIDTH;
    uint4 bits = make_uint4(0, 0, 0, 0);
    if (i < whole) {
        bits = __ldg(reinterpret_cast<const uint4*>(x) + i);
    }
    const Channels means = channels(mean), variances = channels(variance), weights = channels(w), biases = channels(b);
    float factor[COLUMNS], summand[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
        factor[c] = rsqrtf(fabsf(variances.of[c]) + EPS) * weights.of[c];
        summand[c] = fmaf(-means.of[c], factor[c], biases.of[c]);
    }
    if (i < whole) {
        float a[WIDTH];
        widen(reinterpret_cast<const W&>(bits), a);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            a[e] = relu(fmaf(a[e], factor[e % COLUMNS], summand[e % COLUMNS]));
        }
        store_vec16(reinterpret_cast<W*>(y) + i, narrow<T>(a));
    } else if (whole * WIDTH + (i - whole) < count) {
        const long long at = whole * WIDTH + (i - whole);
        const int c = (int)(at % COLUMNS);
        float of_channel = factor[0], added = summand[0];
#pragma unroll
        for (int k = 1; k < COLUMNS; ++k) {
            of_channel = c == k ? factor[k] : of_channel;
            added = c == k ? summand[k] : added;
        }
        y[at] = from_float<T>(relu(fmaf(to_float(x[at]), of_channel, added)));
    }
}
