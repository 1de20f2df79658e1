// CUDA C++ kernels of `norm_activation` (gelu of a layer normalisation) and `batchnorm_relu`.
#include "conversions.cuh"
#include "gelu.cuh"
#include "rows.cuh"

using T = ELEMENT;
using W = Vec16<T>;
using R = Row<T, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, ROW_ROWS, ROW_ALIGNED>;
constexpr int WIDTH = W::WIDTH;

__device__ __forceinline__ float gelu(float x) { return gelu_polynomial<sizeof(T) == 4 ? 8 : 6>(x); }

// 1. A row in the registers of one block (or several short rows), or of a cluster of blocks: read once.
extern "C" __global__ void __launch_bounds__(ROW_LANES * ROW_ROWS, ROW_BLOCKS) layernorm_gelu_rows(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ y, long long m, int n, float eps) {
    R row(m, n);
    W v[ROW_VECTORS];
    row.load_or_zero(x, v);
    float total = 0.0f;
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float a[WIDTH];
        widen(v[k], a);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            total += a[e];
        }
    }
    // Two reductions over registers, because E[x^2] - E[x]^2 loses the variance of rows with a large mean.
    const float mean = row.reduce(total, Add{}, 0.0f) / n;
    make_opaque(v);
    total = 0.0f;
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float a[WIDTH];
        widen(v[k], a);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            const float away = row.holds(k, e) ? a[e] - mean : 0.0f;
            total = fmaf(away, away, total);
        }
    }
    const float scale = rsqrtf(row.reduce(total, Add{}, 0.0f) / n + eps);
    make_opaque(v);
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float a[WIDTH], g[WIDTH], c[WIDTH];
        widen(v[k], a);
        widen(row.load_beside(w, k), g);
        widen(row.load_beside(b, k), c);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            a[e] = gelu(fmaf((a[e] - mean) * scale, g[e], c[e]));
        }
        row.store(y, k, narrow<T>(a));
    }
}

// 2. Rows that do not fit in the registers of one block, without clusters: read twice, the second time from L2.
// Element by element, so that rows may start anywhere; one block of ROW_LANES threads a row.
extern "C" __global__ void __launch_bounds__(ROW_LANES) layernorm_gelu_long_rows(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ y, long long m, int n, float eps) {
    R row(m, n);
    const long long start = (long long)blockIdx.x * n;
    constexpr int DEEP = 8;
    float count = 0.0f, mean = 0.0f, squares = 0.0f;
    for (int first = threadIdx.x; first < n; first += ROW_LANES * DEEP) {
        float v[DEEP];
#pragma unroll
        for (int k = 0; k < DEEP; ++k) {
            const int i = first + k * ROW_LANES;
            v[k] = i < n ? to_float(x[start + i]) : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < DEEP; ++k) {
            if (first + k * ROW_LANES < n) {
                // Welford: the mean of the thread's elements so far, and the sum of their squared distances from it.
                count += 1.0f;
                const float away = v[k] - mean;
                mean += away / count;
                squares = fmaf(away, v[k] - mean, squares);
            }
        }
    }
    const float whole = row.reduce(mean * count, Add{}, 0.0f) / n;
    squares = fmaf((mean - whole) * (mean - whole), count, squares);
    const float scale = rsqrtf(row.reduce(squares, Add{}, 0.0f) / n + eps);
    for (int first = threadIdx.x; first < n; first += ROW_LANES * DEEP) {
#pragma unroll
        for (int k = 0; k < DEEP; ++k) {
            const int i = first + k * ROW_LANES;
            if (i < n) {
                const float z = fmaf((to_float(x[start + i]) - whole) * scale, to_float(w[i]), to_float(b[i]));
                y[start + i] = from_float<T>(gelu(z));
            }
        }
    }
}

// Four channels from index `first` on, with one load where a thread waits for it. With vectors of eight rows in registers one load would
// take 72 registers instead of 64, and an SM would hold 24 warps instead of 32.
__device__ __forceinline__ Vec16<float> channels(const float* vector, int first) {
    if constexpr (ROW_VECTORS < 8) {
        return load_vec16(reinterpret_cast<const Vec16<float>*>(vector + first));
    } else {
        return {vector[first], vector[first + 1], vector[first + 2], vector[first + 3]};
    }
}

// 3. batchnorm and relu. A thread keeps the factors of the channels of one 16-byte vector and processes that vector of ROW_VECTORS rows,
// all in flight at once. Rows are whole vectors; blockIdx.y counts blocks along a row, blockIdx.x blocks of rows. threadIdx.y counts
// neighbouring rows, if a row has fewer vectors than a block has threads.
extern "C" __global__ void __launch_bounds__(256) batchnorm_relu_vec16(
    const T* __restrict__ x, const float* __restrict__ mean, const float* __restrict__ variance, const float* __restrict__ w,
    const float* __restrict__ b, T* __restrict__ y, long long m, int n, float eps) {
    constexpr int DEEP = ROW_VECTORS;
    const int vectors = n / WIDTH, j = blockIdx.y * blockDim.x + threadIdx.x;
    if (j >= vectors) {
        return;
    }
    const long long first = (long long)blockIdx.x * (DEEP * blockDim.y) + threadIdx.y;
    const W* from = reinterpret_cast<const W*>(x) + first * vectors + j;
    W* to = reinterpret_cast<W*>(y) + first * vectors + j;
    const long long step = (long long)blockDim.y * vectors;
    uint4 bits[DEEP];
#pragma unroll
    for (int k = 0; k < DEEP; ++k) {
        if (first + k * blockDim.y < m) {
            bits[k] = *reinterpret_cast<const uint4*>(from + k * step);
        }
    }
    float factor[WIDTH], summand[WIDTH];
#pragma unroll
    for (int e = 0; e < WIDTH; e += 4) {
        const Vec16<float> variances = channels(variance, j * WIDTH + e), weights = channels(w, j * WIDTH + e);
        const Vec16<float> means = channels(mean, j * WIDTH + e), biases = channels(b, j * WIDTH + e);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            factor[e + i] = rsqrtf(fabsf(variances.e[i]) + eps) * weights.e[i];
            summand[e + i] = fmaf(-means.e[i], factor[e + i], biases.e[i]);
        }
    }
#pragma unroll
    for (int k = 0; k < DEEP; ++k) {
        if (first + k * blockDim.y < m) {
            float a[WIDTH];
            widen(*reinterpret_cast<const W*>(&bits[k]), a);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(a[e]) : "f"(fmaf(a[e], factor[e], summand[e])));
            }
            store_vec16(to + k * step, narrow<T>(a));
        }
    }
}
