// `quantize_fp8`, `quantize_int8` (INT8) and `rmsnorm_quantize_fp8` (NORM) of a few long rows: several blocks share a row, in two launches
// (split_rows.cuh). Numerics as in cuda.cu.
#include "conversions.cuh"
#include "eight_bit.cuh"
#include "row_beside.cuh"
#include "split_rows.cuh"

using T = ELEMENT;
using W = Vec16<T>;
constexpr int WIDTH = W::WIDTH;
using R = Row<T, ROW_LANES, ROW_VECTORS, 1, 1, ROW_ALIGNED>;

struct Statistics {
    float squares, most;  // Σ x² (0 without a norm), max |x w|
};
struct Combine {
    __device__ __forceinline__ Statistics operator()(Statistics a, Statistics b) const {
        return {a.squares + b.squares, Max{}(a.most, b.most)};
    }
};
constexpr Statistics NONE = {0.0f, 0.0f};

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

// x w of the row's k-th vector, or x.
__device__ __forceinline__ void weighted(const R& row, const T* w, int k, float (&a)[WIDTH]) {
    if (NORM) {
        float g[WIDTH];
        widen(beside(row, w, k), g);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            a[e] *= g[e];
        }
    }
}

// Statistics of a part of a row.
extern "C" __global__ void __launch_bounds__(ROW_LANES, SPLIT_BLOCKS) quantize_parts(
    const T* __restrict__ x, const T* __restrict__ w, Statistics* __restrict__ partials, long long m, int n, int parts) {
    R row(m, n);
    const Piece piece(row, parts);
    Statistics mine = NONE;
    row.rank = piece.first;
    for (int i = 0; i < piece.count; ++i, row.rank += piece.step) {
        W v[ROW_VECTORS];
        row.load_or_zero(x, v);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float a[WIDTH];
            widen(v[k], a);
            if (NORM) {
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    mine.squares = fmaf(a[e], a[e], mine.squares);
                }
            }
            weighted(row, w, k, a);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                mine.most = Max{}(mine.most, fabsf(a[e]));
            }
        }
    }
    const Statistics all = row.reduce(mine, Combine{}, NONE);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = all;
    }
}

extern "C" __global__ void __launch_bounds__(ROW_LANES, SPLIT_BLOCKS) quantize_from_parts(
    const T* __restrict__ x, const T* __restrict__ w, const Statistics* __restrict__ partials, unsigned char* __restrict__ q,
    float* __restrict__ scales, long long m, int n, int parts, float eps, float smallest, float largest) {
    R row(m, n);
    const Piece piece(row, parts);
    const Statistics all = merged(row, partials, parts, Combine{}, NONE);
    const float norm = NORM ? rsqrtf(all.squares / n + eps) : 1.0f;
    const float most = Max{}(all.most * norm, smallest), factor = norm * (largest / most);
    if (threadIdx.x == 0 && blockIdx.x % parts == 0) {
        scales[row.row] = most / largest;
    }
    row.rank = piece.last();
    for (int i = 0; i < piece.count; ++i, row.rank -= piece.step) {
        W v[ROW_VECTORS];
        row.load_or_zero(x, v);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float a[WIDTH];
            widen(v[k], a);
            weighted(row, w, k, a);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                a[e] *= factor;
            }
            store_bytes(row, q, k, a);
        }
    }
}
