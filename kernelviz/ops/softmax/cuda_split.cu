// `softmax` of a few long rows, and its backward pass: several blocks share a row, in two launches (split_rows.cuh).
#include "exponentials.cuh"
#include "split_rows.cuh"

using R = Row<ELEMENT, ROW_LANES, ROW_VECTORS, 1, 1, ROW_ALIGNED>;
constexpr int WIDTH = R::WIDTH;
constexpr Exponentials NONE = {LOWEST, 0.0f};

// Maximum and sum of exponentials of a part of a row.
extern "C" __global__ void __launch_bounds__(ROW_LANES, 2048 / ROW_LANES) softmax_parts(
    const ELEMENT* __restrict__ x, Exponentials* __restrict__ partials, long long m, int n, int parts) {
    R row(m, n);
    const Piece piece(row, parts);
    Exponentials mine = NONE;
    row.rank = piece.first;
    for (int i = 0; i < piece.count; ++i, row.rank += piece.step) {
        Vec16<ELEMENT> w[ROW_VECTORS];
        row.load(x, w, minus_infinity<ELEMENT>());
        mine = Merge()(mine, exponentials_of(w, [](int, int, float) {}));
    }
    const Exponentials all = row.reduce(mine, Merge(), NONE);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = all;
    }
}

// A row of nothing but -inf becomes 0 * inf = NaN, as torch's does.
extern "C" __global__ void __launch_bounds__(ROW_LANES, 2048 / ROW_LANES) softmax_from_parts(
    const ELEMENT* __restrict__ x, const Exponentials* __restrict__ partials, ELEMENT* __restrict__ out, long long m, int n, int parts) {
    R row(m, n);
    const Piece piece(row, parts);
    const Exponentials all = merged(row, partials, parts, Merge(), NONE);
    const float inverse = 1.0f / all.sum;
    row.rank = piece.last();
    for (int i = 0; i < piece.count; ++i, row.rank -= piece.step) {
        Vec16<ELEMENT> w[ROW_VECTORS];
        row.load(x, w, minus_infinity<ELEMENT>());
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float y[WIDTH];
            widen(w[k], y);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                y[e] = exponential(y[e] - all.top) * inverse;
            }
            row.store(out, k, narrow<ELEMENT>(y));
        }
    }
}

// Σ y dy of a part of a row.
extern "C" __global__ void __launch_bounds__(ROW_LANES, 1024 / ROW_LANES) softmax_backward_parts(
    const ELEMENT* __restrict__ y, const ELEMENT* __restrict__ dy, float* __restrict__ partials, long long m, int n, int parts) {
    R row(m, n);
    const Piece piece(row, parts);
    float sum = 0.0f;
    row.rank = piece.first;
    for (int i = 0; i < piece.count; ++i, row.rank += piece.step) {
        Vec16<ELEMENT> a[ROW_VECTORS], b[ROW_VECTORS];
        row.load_or_zero(y, a);
        row.load_or_zero(dy, b);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float of_y[WIDTH], of_dy[WIDTH];
            widen(a[k], of_y);
            widen(b[k], of_dy);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                sum = fmaf(of_y[e], of_dy[e], sum);
            }
        }
    }
    sum = row.reduce(sum, Add(), 0.0f);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
    }
}

// dx = y (dy - Σ y dy)
extern "C" __global__ void __launch_bounds__(ROW_LANES, 1024 / ROW_LANES) softmax_backward_from_parts(
    const ELEMENT* __restrict__ y, const ELEMENT* __restrict__ dy, const float* __restrict__ partials, ELEMENT* __restrict__ dx, long long m,
    int n, int parts) {
    R row(m, n);
    const Piece piece(row, parts);
    const float sum = merged(row, partials, parts, Add(), 0.0f);
    row.rank = piece.last();
    for (int i = 0; i < piece.count; ++i, row.rank -= piece.step) {
        Vec16<ELEMENT> a[ROW_VECTORS], b[ROW_VECTORS];
        row.load_or_zero(y, a);
        row.load_or_zero(dy, b);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float of_y[WIDTH], of_dy[WIDTH];
            widen(a[k], of_y);
            widen(b[k], of_dy);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                of_y[e] *= of_dy[e] - sum;
            }
            row.store(dx, k, narrow<ELEMENT>(of_y));
        }
    }
}
