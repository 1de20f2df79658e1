// `cross_entropy` of a few long rows, with and without its gradient: several blocks share a row, in two launches (split_rows.cuh).
#include "exponentials.cuh"
#include "label.cuh"
#include "split_rows.cuh"

using R = Row<ELEMENT, ROW_LANES, ROW_VECTORS, 1, 1, ROW_ALIGNED>;
constexpr int WIDTH = R::WIDTH;
constexpr Exponentials NONE = {LOWEST, 0.0f};

// Maximum and sum of exponentials of a part of a row.
extern "C" __global__ void __launch_bounds__(ROW_LANES, 2048 / ROW_LANES) cross_entropy_parts(
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

// The loss of a row, a block each.
extern "C" __global__ void __launch_bounds__(ROW_LANES, 2048 / ROW_LANES) cross_entropy_from_parts(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, const Exponentials* __restrict__ partials,
    ELEMENT* __restrict__ loss, long long m, int n, int parts) {
    R row(m, n);
    const float chosen = threadIdx.x == 0 ? to_float(x[row.start + labels[row.row]]) : 0.0f;
    const Exponentials all = merged(row, partials, parts, Merge(), NONE);
    if (threadIdx.x == 0) {
        loss[row.row] = from_float<ELEMENT>(logf(all.sum) + (all.top - chosen));
    }
}

// The gradient of a part of a row, and, by the first block of a row, the loss.
extern "C" __global__ void __launch_bounds__(ROW_LANES, 2048 / ROW_LANES) cross_entropy_with_grad_from_parts(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, const Exponentials* __restrict__ partials,
    ELEMENT* __restrict__ loss, ELEMENT* __restrict__ dx, long long m, int n, int parts) {
    R row(m, n);
    const Piece piece(row, parts);
    const int column = (int)labels[row.row], label = column + row.head;
    const bool writes_loss = blockIdx.x % parts == 0 && threadIdx.x == 0;
    const float chosen = writes_loss ? to_float(x[row.start + column]) : 0.0f;
    const Exponentials all = merged(row, partials, parts, Merge(), NONE);
    if (writes_loss) {
        loss[row.row] = from_float<ELEMENT>(logf(all.sum) + (all.top - chosen));
    }
    const float inverse = 1.0f / all.sum;
    row.rank = piece.last();
    for (int i = 0; i < piece.count; ++i, row.rank -= piece.step) {
        Vec16<ELEMENT> w[ROW_VECTORS];
        row.load(x, w, minus_infinity<ELEMENT>());
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float p[WIDTH];
            widen(w[k], p);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                p[e] = exponential(p[e] - all.top) * inverse;
            }
            subtract_label(p, row.vector(k), label);
            row.store(dx, k, narrow<ELEMENT>(p));
        }
    }
}
