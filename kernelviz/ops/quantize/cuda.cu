// CUDA C++ kernels of `quantize_fp8`, `quantize_int8` (INT8) and `rmsnorm_quantize_fp8` (NORM): one source for the three.
#include <cuda_fp8.h>

#include "lanes.cuh"
#include "rows.cuh"

using T = ELEMENT;
using W = Word<T>;
constexpr int WIDTH = W::WIDTH;
using R = Row<T, ROW_LANES, ROW_WORDS, ROW_CLUSTER, ROW_ROWS, ROW_ALIGNED>;

// All words of this thread, asked for together; 0 where they are not the row's.
__device__ __forceinline__ void load_row(const R& row, const T* x, W (&v)[ROW_WORDS]) {
    const W* from = reinterpret_cast<const W*>(x + (row.start - row.head));
    // Of the whole matrix the last word may be cut; `mask` reads it by elements.
    const int whole = ROW_ALIGNED ? row.words : (int)min((long long)row.words, (row.total - (row.start - row.head)) / WIDTH);
#pragma unroll
    for (int k = 0; k < ROW_WORDS; ++k) {
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (row.word(k) < whole) {
            bits = *reinterpret_cast<const uint4*>(from + row.word(k));
        }
        *reinterpret_cast<uint4*>(&v[k]) = bits;
    }
    if (!ROW_ALIGNED) {
        row.mask(x, v, T(0.0f));
    }
}

// Words as if the compiler did not know them: else it keeps the fp32 numbers that it has made of them once, in twice the
// registers, until they are needed again.
__device__ __forceinline__ void forget(W (&v)[ROW_WORDS]) {
#pragma unroll
    for (int k = 0; k < ROW_WORDS; ++k) {
        uint4& bits = *reinterpret_cast<uint4*>(&v[k]);
        asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
    }
}

// Statistics of a row from one read of it.
struct Statistics {
    float squares, most;  // Σ x², max |x w|
};
struct Combine {
    __device__ __forceinline__ Statistics operator()(Statistics a, Statistics b) const {
        return {a.squares + b.squares, Max{}(a.most, b.most)};
    }
};

// Four numbers to 8 bits each, rounded to nearest, ties to even; too large ones become the largest (an element over the scale may be
// a little more than that in fp32).
__device__ __forceinline__ unsigned narrowed(float a, float b, float c, float d) {
    unsigned packed;
    if (INT8) {
        asm("{.reg .u32 high;\n\t"
            "cvt.pack.sat.s8.s32.b32 high, %1, %2, 0;\n\t"
            "cvt.pack.sat.s8.s32.b32 %0, %3, %4, high;}"
            : "=r"(packed)
            : "r"(__float2int_rn(d)), "r"(__float2int_rn(c)), "r"(__float2int_rn(b)), "r"(__float2int_rn(a)));
    } else {
        const unsigned low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
        packed = low | (unsigned)__nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, __NV_E4M3) << 16;
    }
    return packed;
}

// The 8-bit elements of one 16-byte vector of x: one store of 8 bytes (4 if x is fp32).
struct alignas(WIDTH) Bytes {
    unsigned packed[WIDTH / 4];
};

__device__ __forceinline__ void store_bytes(const R& row, unsigned char* q, int k, const float (&v)[WIDTH]) {
    const int j = row.word(k);
    if (j >= row.words) {
        return;
    }
    Bytes bytes;
#pragma unroll
    for (int i = 0; i < WIDTH / 4; ++i) {
        bytes.packed[i] = narrowed(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
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
    W v[ROW_WORDS];
    load_row(row, x, v);
    Statistics statistics = {0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < ROW_WORDS; ++k) {
        float a[WIDTH], g[WIDTH];
        widen(v[k], a);
        if (NORM) {
            widen(row.beside(w, k), g);
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
    forget(v);
    const float norm = norm_of(statistics.squares, n, eps);
    const float most = Max{}(statistics.most * norm, smallest), factor = norm * (largest / most);
    if (row.inside && row.lane == 0 && row.rank == 0) {
        scales[row.row] = most / largest;
    }
#pragma unroll
    for (int k = 0; k < ROW_WORDS; ++k) {
        float a[WIDTH], g[WIDTH];
        widen(v[k], a);
        if (NORM) {
            widen(row.beside(w, k), g);
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
                q[start + i] = (unsigned char)(narrowed(a, 0.0f, 0.0f, 0.0f) & 0xffu);
            }
        }
    }
}
