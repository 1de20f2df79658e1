// CUDA C++ kernels of `quantize_fp8`, `quantize_int8` (INT8) and `rmsnorm_quantize_fp8` (NORM): one source for the three.
#include "conversions.cuh"
#include "eight_bit.cuh"
#include "rows.cuh"

using T = ELEMENT;
using W = Vec16<T>;
constexpr int WIDTH = W::WIDTH;
using R = Row<T, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, ROW_ROWS, ROW_ALIGNED>;

// Statistics of a row from one read of it.
struct Statistics {
    float squares, most;  // Σ x², max |x w|
};
struct Combine {
    __device__ __forceinline__ Statistics operator()(Statistics a, Statistics b) const {
        return {a.squares + b.squares, Max{}(a.most, b.most)};
    }
};

// The 8-bit elements of one 16-byte vector of x: one store of 8 bytes (4 if x is fp32).
struct alignas(WIDTH) Bytes {
    unsigned packed[WIDTH / 4];
};

__device__ __forceinline__ void store_bytes(const R& row, unsigned char* q, int k, const float (&v)[WIDTH]) {
    const int j = row.vector(k);
    if (j >= row.vectors) {
        return;
    }
    Bytes bytes;
#pragma unroll
    for (int i = 0; i < WIDTH / 4; ++i) {
        bytes.packed[i] = pack_8_bit<INT8>(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
    }
    if (ROW_ALIGNED || (j * WIDTH >= row.head && (j + 1) * WIDTH <= row.head + row.n)) {
        *(reinterpret_cast<Bytes*>(q + (row.start - row.head)) + j) = bytes;
    } else {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            if (row.holds(k, e)) {
                q[row.start + row.column(k, e)] = (unsigned char)(bytes.packed[e / 4] >> 8 * (e % 4));
            }
        }
    }
}

__device__ __forceinline__ float norm_of(float squares, int n, float eps) { return NORM ? rsqrtf(squares / n + eps) : 1.0f; }

// 1. A row in the registers of one block (or several short rows), or of a cluster of blocks: read once. The weight is read twice, from
// the L1 cache: with registers for it fewer blocks would fit on an SM.
extern "C" __global__ void __launch_bounds__(ROW_LANES * ROW_ROWS, ROW_BLOCKS) quantize_rows(
    const T* __restrict__ x, const T* __restrict__ w, unsigned char* __restrict__ q, float* __restrict__ scales, long long m, int n,
    float eps, float smallest, float largest) {
    R row(m, n);
    W v[ROW_VECTORS];
    row.load_or_zero(x, v);
    Statistics statistics = {0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float a[WIDTH], g[WIDTH];
        widen(v[k], a);
        if (NORM) {
            widen(row.load_beside(w, k), g);
        }
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            statistics.squares = NORM ? fmaf(a[e], a[e], statistics.squares) : 0.0f;
            statistics.most = Max{}(statistics.most, fabsf(NORM ? a[e] * g[e] : a[e]));
        }
    }
    if (NORM) {
        statistics = row.reduce(statistics, Combine{}, Statistics{0.0f, 0.0f});
    } else {
        statistics.most = row.reduce(statistics.most, Max{}, 0.0f);
    }
    make_opaque(v);
    const float norm = norm_of(statistics.squares, n, eps);
    const float most = Max{}(statistics.most * norm, smallest), factor = norm * (largest / most);
    if (row.inside && row.lane == 0 && row.rank == 0) {
        scales[row.row] = most / largest;
    }
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float a[WIDTH], g[WIDTH];
        widen(v[k], a);
        if (NORM) {
            widen(row.load_beside(w, k), g);
        }
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            a[e] = (NORM ? a[e] * g[e] : a[e]) * factor;
        }
        store_bytes(row, q, k, a);
    }
}

// 2. Rows that do not fit in the registers of one block, without clusters: read twice, the second time from L2.
// Element by element, so that rows may start anywhere; one block of ROW_LANES threads a row.
extern "C" __global__ void __launch_bounds__(ROW_LANES) quantize_long_rows(
    const T* __restrict__ x, const T* __restrict__ w, unsigned char* __restrict__ q, float* __restrict__ scales, long long m, int n,
    float eps, float smallest, float largest) {
    R row(m, n);
    const long long start = (long long)blockIdx.x * n;
    constexpr int DEEP = 8;
    Statistics statistics = {0.0f, 0.0f};
    for (int first = threadIdx.x; first < n; first += ROW_LANES * DEEP) {
        float a[DEEP];
#pragma unroll
        for (int k = 0; k < DEEP; ++k) {
            const int i = first + k * ROW_LANES;
            a[k] = i < n ? to_float(x[start + i]) : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < DEEP; ++k) {
            const int i = first + k * ROW_LANES;
            statistics.squares = fmaf(a[k], a[k], statistics.squares);
            statistics.most = Max{}(statistics.most, fabsf(NORM && i < n ? a[k] * to_float(w[i]) : a[k]));
        }
    }
    statistics = row.reduce(statistics, Combine{}, Statistics{0.0f, 0.0f});
    const float norm = norm_of(statistics.squares, n, eps);
    const float most = Max{}(statistics.most * norm, smallest), factor = norm * (largest / most);
    if (threadIdx.x == 0) {
        scales[blockIdx.x] = most / largest;
    }
    for (int first = threadIdx.x; first < n; first += ROW_LANES * DEEP) {
#pragma unroll
        for (int k = 0; k < DEEP; ++k) {
            const int i = first + k * ROW_LANES;
            if (i < n) {
                const float a = to_float(x[start + i]) * (NORM ? to_float(w[i]) : 1.0f) * factor;
                q[start + i] = (unsigned char)(pack_8_bit<INT8>(a, 0.0f, 0.0f, 0.0f) & 0xffu);
            }
        }
    }
}
