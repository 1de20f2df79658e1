// CUDA C++ kernels of `softmax` and of its backward pass. A row is kept as 16-byte vectors in the registers of a block or a cluster, or in
// registers and shared memory; or a block reads it twice, in chunks. Compiled with -DELEMENT and a tile (kernelviz/ops/kernels/row_tiles.py).
#include "exponentials.cuh"
#include "on_chip_rows.cuh"

using R = Row<ELEMENT, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, ROW_ROWS, ROW_ALIGNED>;
constexpr int WIDTH = R::WIDTH;
constexpr Exponentials NONE = {LOWEST, 0.0f};

// 1. One read, one reduction, one write. Of each element its exponential relative to the thread's own maximum is kept; one factor a thread
// converts it to the row's maximum. A row of nothing but -inf becomes 0 * inf = NaN, as torch's does. With ROW_RAW the
// vectors are kept as loaded and the exponentials computed twice: half the registers an element in half precision, so twice the row.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) softmax_rows(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m, int n) {
    R row(m, n);
    Vec16<ELEMENT> w[ROW_VECTORS];
    row.load(x, w, minus_infinity<ELEMENT>());
    float terms[ROW_VECTORS][WIDTH];
    const Exponentials mine = exponentials_of(w, [&](int k, int e, float term) { terms[k][e] = term; });
    const Exponentials all = row.reduce(mine, Merge(), NONE);
    const float inverse = 1.0f / all.sum;
    if (ROW_RAW) {
        make_opaque(w);
    }
    const float scale = exponential(mine.top - all.top) * inverse;
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float y[WIDTH];
        widen(w[k], y);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            y[e] = ROW_RAW ? exponential(y[e] - all.top) * inverse : terms[k][e] * scale;
        }
        row.store(out, k, narrow<ELEMENT>(y));
    }
}

// 2. Rows of any length, one block each: read once for maximum and sum, and a second time, from L2 where it is still there.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) softmax_chunks(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m, int n) {
    R row(m, n);
    Vec16<ELEMENT> w[ROW_VECTORS];
    Exponentials mine = NONE;
    const int chunks = (row.vectors + ROW_VECTORS * ROW_LANES - 1) / (ROW_VECTORS * ROW_LANES);
    for (row.rank = 0; row.rank < chunks; ++row.rank) {
        row.load(x, w, minus_infinity<ELEMENT>());
        mine = Merge()(mine, exponentials_of(w, [](int, int, float) {}));
    }
    row.rank = 0;
    const Exponentials all = row.reduce(mine, Merge(), NONE);
    const float scale = 1.0f / all.sum;
    // In reverse order, because the chunks read last are the most likely to be in L2 still.
    for (row.rank = chunks - 1; row.rank >= 0; --row.rank) {
        row.load(x, w, minus_infinity<ELEMENT>());
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float y[WIDTH];
            widen(w[k], y);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                y[e] = exponential(y[e] - all.top) * scale;
            }
            row.store(out, k, narrow<ELEMENT>(y));
        }
    }
}

#if ROW_IN_SHARED > 0
// 3. Long rows: vectors in registers and shared memory, summed as they arrive. The exponentials are computed twice, since
// only the raw vectors fit.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) softmax_on_chip(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m, int n) {
    R row(m, n);
    OnChipRow<R, ELEMENT, ROW_LANES, ROW_IN_REGISTERS, ROW_IN_SHARED, ROW_ALIGNED> on_chip(row, x, minus_infinity<ELEMENT>());
    Exponentials mine = NONE;
    on_chip.consume(Accumulate{mine});
    const Exponentials all = row.reduce(mine, Merge(), NONE);
    const float inverse = 1.0f / all.sum;
    make_opaque(on_chip.register_vectors);
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float y[WIDTH];
        widen(on_chip.vector(k), y);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            y[e] = exponential(y[e] - all.top) * inverse;
        }
        row.store(out, k, narrow<ELEMENT>(y));
    }
}
#endif

// dx of one vector, once Σ y dy is known.
__device__ __forceinline__ Vec16<ELEMENT> gradient(const Vec16<ELEMENT>& y, const Vec16<ELEMENT>& dy, float mean) {
    float a[WIDTH], b[WIDTH];
    widen(y, a);
    widen(dy, b);
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) {
        a[e] *= b[e] - mean;
    }
    return narrow<ELEMENT>(a);
}
template <int VECTORS>
__device__ __forceinline__ float product(const Vec16<ELEMENT> (&y)[VECTORS], const Vec16<ELEMENT> (&dy)[VECTORS]) {
    float sum[2] = {0.0f, 0.0f};
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        float a[WIDTH], b[WIDTH];
        widen(y[k], a);
        widen(dy[k], b);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            sum[e % 2] += a[e] * b[e];
        }
    }
    return sum[0] + sum[1];
}

// 4. The backward pass, dx = y (dy - Σ y dy): both rows in registers.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) softmax_backward_rows(
    const ELEMENT* __restrict__ y, const ELEMENT* __restrict__ dy, ELEMENT* __restrict__ dx, long long m, int n) {
    R row(m, n);
    Vec16<ELEMENT> a[ROW_VECTORS], b[ROW_VECTORS];
    row.load(y, a, from_float<ELEMENT>(0.0f));
    row.load(dy, b, from_float<ELEMENT>(0.0f));
    const float mean = row.reduce(product(a, b), Add(), 0.0f);
    make_opaque(a);
    make_opaque(b);
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        row.store(dx, k, gradient(a[k], b[k], mean));
    }
}

// 5. The same in chunks, which are read twice.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) softmax_backward_chunks(
    const ELEMENT* __restrict__ y, const ELEMENT* __restrict__ dy, ELEMENT* __restrict__ dx, long long m, int n) {
    R row(m, n);
    Vec16<ELEMENT> a[ROW_VECTORS], b[ROW_VECTORS];
    float sum = 0.0f;
    const int chunks = (row.vectors + ROW_VECTORS * ROW_LANES - 1) / (ROW_VECTORS * ROW_LANES);
    for (row.rank = 0; row.rank < chunks; ++row.rank) {
        row.load(y, a, from_float<ELEMENT>(0.0f));
        row.load(dy, b, from_float<ELEMENT>(0.0f));
        sum += product(a, b);
    }
    row.rank = 0;
    const float mean = row.reduce(sum, Add(), 0.0f);
    for (row.rank = chunks - 1; row.rank >= 0; --row.rank) {
        row.load(y, a, from_float<ELEMENT>(0.0f));
        row.load(dy, b, from_float<ELEMENT>(0.0f));
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            row.store(dx, k, gradient(a[k], b[k], mean));
        }
    }
}

#if ROW_IN_SHARED > 0
struct Nothing {
    template <int VECTORS> __device__ __forceinline__ void operator()(const Vec16<ELEMENT> (&)[VECTORS]) const {}
};

// 6. The same for long rows: y and dy in registers and shared memory.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) softmax_backward_on_chip(
    const ELEMENT* __restrict__ y, const ELEMENT* __restrict__ dy, ELEMENT* __restrict__ dx, long long m, int n) {
    R row(m, n);
    using H = OnChipRow<R, ELEMENT, ROW_LANES, ROW_IN_REGISTERS, ROW_IN_SHARED, ROW_ALIGNED>;
    H a(row, y, from_float<ELEMENT>(0.0f)), b(row, dy, from_float<ELEMENT>(0.0f), 1);
    float sum = 0.0f;
    a.consume(Nothing());
    b.consume(Nothing());
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        const Vec16<ELEMENT> one[1] = {a.vector(k)}, other[1] = {b.vector(k)};
        sum += row.vector(k) < row.vectors ? product(one, other) : 0.0f;
    }
    const float mean = row.reduce(sum, Add(), 0.0f);
    make_opaque(a.register_vectors);
    make_opaque(b.register_vectors);
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        row.store(dx, k, gradient(a.vector(k), b.vector(k), mean));
    }
}
#endif
