// CUDA C++ kernels of `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS): one source for the three. Pointers that an op does not
// have (to the residual r, the bias b or the stored sum s) are null and not used.
#include "conversions.cuh"
#include "rows.cuh"

using T = ELEMENT;
using W = Vec16<T>;
using R = Row<T, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, ROW_ROWS, ROW_ALIGNED>;
constexpr int WIDTH = W::WIDTH;

// The sum as it is stored, so that s is the row that is normalised.
__device__ __forceinline__ W added(const W& x, const W& r) {
    float a[WIDTH], b[WIDTH];
    widen(x, a);
    widen(r, b);
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) {
        a[e] += b[e];
    }
    return narrow<T>(a);
}

// 1. A row in the registers of one block (or several short rows), or of a cluster of blocks: read once. The weight is read when it is
// needed, from the L1 cache: with registers for it fewer blocks would fit on an SM.
extern "C" __global__ void __launch_bounds__(ROW_LANES * ROW_ROWS, ROW_BLOCKS) normalise_rows(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, long long m, int n, float eps) {
    R row(m, n);
    W v[ROW_VECTORS];
    row.load_or_zero(x, v);
    if (ADDS) {
        W other[ROW_VECTORS];
        row.load_or_zero(r, other);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            v[k] = added(v[k], other[k]);
            row.store(s, k, v[k]);
        }
        make_opaque(v);
    }
    float mean = 0.0f, total = 0.0f;
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float a[WIDTH];
        widen(v[k], a);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            total = CENTRED ? total + a[e] : fmaf(a[e], a[e], total);
        }
    }
    total = row.reduce(total, Add{}, 0.0f);
    make_opaque(v);
    if (CENTRED) {
        // Two reductions over registers, because E[x^2] - E[x]^2 loses the variance of rows with a large mean.
        mean = total / n;
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
        total = row.reduce(total, Add{}, 0.0f);
        make_opaque(v);
    }
    const float scale = rsqrtf(total / n + eps);
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float a[WIDTH], g[WIDTH], c[WIDTH];
        widen(v[k], a);
        widen(row.load_beside(w, k), g);
        if (CENTRED) {
            widen(row.load_beside(b, k), c);
        }
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            a[e] = CENTRED ? fmaf((a[e] - mean) * scale, g[e], c[e]) : a[e] * scale * g[e];
        }
        row.store(y, k, narrow<T>(a));
    }
}

// 2. Rows that do not fit in the registers of one block, without clusters: read twice, the second time from L2.
// Element by element, so that rows may start anywhere; one block of ROW_LANES threads a row.
extern "C" __global__ void __launch_bounds__(ROW_LANES) normalise_long_rows(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, long long m, int n, float eps) {
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
            if (ADDS && i < n) {
                const T sum = from_float<T>(v[k] + to_float(r[start + i]));
                s[start + i] = sum;
                v[k] = to_float(sum);
            }
        }
#pragma unroll
        for (int k = 0; k < DEEP; ++k) {
            if (!CENTRED) {
                squares = fmaf(v[k], v[k], squares);
            } else if (first + k * ROW_LANES < n) {
                // Welford: the mean of the thread's elements so far, and the sum of their squared distances from it.
                count += 1.0f;
                const float away = v[k] - mean;
                mean += away / count;
                squares = fmaf(away, v[k] - mean, squares);
            }
        }
    }
    if (CENTRED) {
        const float whole = row.reduce(mean * count, Add{}, 0.0f) / n;
        squares = fmaf((mean - whole) * (mean - whole), count, squares);
        mean = whole;
    }
    const float scale = rsqrtf(row.reduce(squares, Add{}, 0.0f) / n + eps);
    const T* from = ADDS ? s : x;
    for (int first = threadIdx.x; first < n; first += ROW_LANES * DEEP) {
#pragma unroll
        for (int k = 0; k < DEEP; ++k) {
            const int i = first + k * ROW_LANES;
            if (i < n) {
                const float unit = (to_float(from[start + i]) - mean) * scale * to_float(w[i]);
                y[start + i] = from_float<T>(CENTRED ? unit + to_float(b[i]) : unit);
            }
        }
    }
}
