// `batchnorm_relu` for rows of any length: x is walked as one vector, so that all of its accesses are of 16 bytes and aligned. ELEMENT is
// float, __half or __nv_bfloat16.
#include "conversions.cuh"
#include "loads_first.cuh"
#include "relu.cuh"

using T = ELEMENT;
using W = Vec16<T>;
constexpr int WIDTH = W::WIDTH;
constexpr int BLOCKS = sizeof(T) == 2 ? 3 : 4;  // an SM: with four, the kernel of 16-bit elements would spill

// Whether the matrix is in groups of adjacent rows.
#ifndef GROUPED
#define GROUPED 0
#endif

// The numbers of WIDTH channels from channel 4 first + shift on: of WIDTH / 4 + 1 vectors.
__device__ __forceinline__ void adjacent_channels(const float* __restrict__ from, int first, int shift, float (&out)[WIDTH]) {
    uint4 bits[WIDTH / 4 + 1];
#pragma unroll
    for (int k = 0; k <= WIDTH / 4; ++k) {
        bits[k] = __ldg(reinterpret_cast<const uint4*>(from) + first + k);
    }
    const float* loaded = reinterpret_cast<const float*>(bits);
    float a[WIDTH + 2];
#pragma unroll
    for (int i = 0; i < WIDTH + 2; ++i) {
        a[i] = shift & 2 ? loaded[i + 2] : loaded[i];
    }
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        out[i] = shift & 1 ? a[i + 1] : a[i];
    }
}

// The numbers of WIDTH channels from channel `column` on, of which there are n; behind the last follows the first.
__device__ __forceinline__ void wrapped_channels(const float* __restrict__ from, int column, int n, float (&out)[WIDTH]) {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        out[i] = __ldg(from + column);
        column = column + 1 == n ? 0 : column + 1;
    }
}

// A thread processes vectors of x that are `stride` vectors apart, ROWS of them in flight at once. The stride is a multiple of n elements, so
// that they have the same channels, of which the thread keeps a factor and a summand. Threads from `stride` on process the elements behind
// the last whole vector. GROUPED: a thread has ROWS vectors of one group of `reach` vectors, so that what the GPU reads and writes at once is close
// together; each group has `group_blocks` blocks.
extern "C" __global__ void __launch_bounds__(256, BLOCKS) batchnorm_relu_flat(
    const T* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ variance, const float* __restrict__ w,
    const float* __restrict__ b, T* __restrict__ y, long long count, long long stride, int n, float eps, long long reach, int group_blocks) {
    const unsigned group = GROUPED ? blockIdx.x / group_blocks : 0;
    // The thread's first vector in the group, and where the group begins and ends.
    const long long j = (long long)(blockIdx.x - group * group_blocks) * 256 + threadIdx.x, whole = count / WIDTH;
    const long long begin = GROUPED ? group * reach : 0, end = GROUPED && begin + reach < whole ? begin + reach : whole;
    if (j >= stride) {
        const long long i = whole * WIDTH + (j - stride);
        if (group == 0 && i < count) {
            const int c = (int)(i % n);
            const float factor = rsqrtf(fabsf(variance[c]) + eps) * w[c];
            y[i] = from_float<T>(relu(fmaf(to_float(x[i]), factor, fmaf(-mean[c], factor, b[c]))));
        }
        return;
    }
    W vectors[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (begin + j + r * stride < end) {
            vectors[r] = load_vec16(reinterpret_cast<const W*>(x) + begin + j + r * stride);
        }
    }
    // A division of 64 bits takes several times as long. A group has fewer elements than 2^31.
    const long long at = j * WIDTH;
    const int column = !GROUPED && at >> 31 ? (int)(at % n) : (int)at % n;
    float factor[WIDTH], summand[WIDTH], means[WIDTH], weights[WIDTH];
    // One branch for all of them, so that all loads are in flight at once.
    if (column / 4 * 4 + WIDTH + 4 <= n) {
        const int first = column / 4, shift = column % 4;
        adjacent_channels(variance, first, shift, factor);
        adjacent_channels(w, first, shift, weights);
        adjacent_channels(mean, first, shift, means);
        adjacent_channels(b, first, shift, summand);
    } else {
        wrapped_channels(variance, column, n, factor);
        wrapped_channels(w, column, n, weights);
        wrapped_channels(mean, column, n, means);
        wrapped_channels(b, column, n, summand);
    }
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) {
        factor[e] = rsqrtf(fabsf(factor[e]) + eps) * weights[e];
        summand[e] = fmaf(-means[e], factor[e], summand[e]);
    }
    for (long long first = begin + j; first < end; first += ROWS * stride) {
        if (first != begin + j) {
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                if (first + r * stride < end) {
                    vectors[r] = load_vec16(reinterpret_cast<const W*>(x) + first + r * stride);
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            if (first + r * stride < end) {
                float a[WIDTH];
                widen(vectors[r], a);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    a[e] = relu(fmaf(a[e], factor[e], summand[e]));
                }
                store_vec16(reinterpret_cast<W*>(y) + first + r * stride, narrow<T>(a));
            }
        }
        if (GROUPED) {  // a group has as many rows as a thread has in flight
            break;
        }
    }
}
