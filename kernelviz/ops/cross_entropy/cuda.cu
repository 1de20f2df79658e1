// CUDA C++ kernels of `cross_entropy`, of its gradient, and of both at once. Compiled with -DELEMENT and a tile
// (kernelviz/ops/kernels/row_tiles.py).
#include "exponentials.cuh"
#include "label.cuh"
#include "on_chip_rows.cuh"

using R = Row<ELEMENT, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, ROW_ROWS, ROW_ALIGNED>;
constexpr int WIDTH = R::WIDTH;
constexpr Exponentials NONE = {LOWEST, 0.0f};

// ln Σ exp x - x of the label, and ln Σ exp x for a backward pass, by the first thread of the row.
__device__ __forceinline__ void finish(
    const R& row, int rank, Exponentials all, float chosen, ELEMENT* loss, float* sums) {
    if (row.inside && row.lane == 0 && rank == 0) {
        loss[row.row] = from_float<ELEMENT>(logf(all.sum) + (all.top - chosen));
        if (sums != nullptr) {
            sums[row.row] = logf(all.sum) + all.top;
        }
    }
}

// The logit of the label, for the thread that will need it: its load is issued while those of the row are in flight.
__device__ __forceinline__ float chosen_by(const R& row, const ELEMENT* x, const long long* labels) {
    return row.inside && row.lane == 0 ? to_float(x[row.start + labels[row.row]]) : 0.0f;
}

// A block's loop over the vectors that belong to this row only: VECTORS a thread and step, one load instruction each.
template <int VECTORS> struct Walk {
    static constexpr int STEP = VECTORS * ROW_LANES;
    const Vec16<ELEMENT>* at;
    Vec16<ELEMENT> w[VECTORS];

    __device__ __forceinline__ void load() {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            w[k] = load_vec16(at + k * ROW_LANES);
        }
        at += ROW_CLUSTER * STEP;
    }
};

// 1. Losses only: nothing of a row is needed twice, so a block (or a cluster, where rows are few) walks it in steps, and the next
// step is in flight while one is summed. Full steps first, without bounds checks; then the remaining vectors, and the elements
// before the first and after the last vector.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) cross_entropy_steps(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, ELEMENT* __restrict__ loss, float* __restrict__ sums,
    long long m, int n) {
    R row(m, n);
    constexpr int STEP = ROW_VECTORS * ROW_LANES;
    const int before = row.head ? WIDTH - row.head : 0;
    const int inner = row.inside && n > before ? (n - before) / WIDTH : 0;
    const ELEMENT* from = x + row.start + (inner ? before : 0);
    Exponentials mine = NONE;
    Walk<ROW_VECTORS> one, other;
    one.at = reinterpret_cast<const Vec16<ELEMENT>*>(from) + row.rank * STEP + row.lane;
    int left = inner / STEP - row.rank;  // whole steps of the row from ours on, every ROW_CLUSTER-th of which is ours
    if (left > 0) {
        one.load();
    }
    const float chosen = chosen_by(row, x, labels);
    while (left > ROW_CLUSTER) {
        other.at = one.at;
        other.load();
        Accumulate{mine}(one.w);
        left -= ROW_CLUSTER;
        if (left <= ROW_CLUSTER) {
            one = other;
            break;
        }
        one.at = other.at;
        one.load();
        Accumulate{mine}(other.w);
        left -= ROW_CLUSTER;
    }
    if (left > 0) {
        Accumulate{mine}(one.w);
    }
    if (row.inside && row.rank == 0) {
        const Vec16<ELEMENT>* rest = reinterpret_cast<const Vec16<ELEMENT>*>(from);
        for (int j = inner / STEP * STEP + row.lane; j < inner; j += ROW_LANES) {
            const Vec16<ELEMENT> w[1] = {load_vec16(rest + j)};
            Accumulate{mine}(w);
        }
        const int covered = inner * WIDTH, outer = n - covered;
        for (int i = row.lane; i < outer; i += ROW_LANES) {
            const int column = !inner || i < before ? i : covered + i;
            const float v = to_float(x[row.start + column]), top = fmaxf(v, LOWEST);
            mine = Merge()(mine, {top, exponential(v - top)});
        }
    }
    finish(row, row.rank, row.reduce(mine, Merge(), NONE), chosen, loss, sums);
}

// 2. Losses of short rows, whose vectors are all in flight at once: a part of a warp, a warp or a block each.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) cross_entropy_rows(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, ELEMENT* __restrict__ loss, float* __restrict__ sums,
    long long m, int n) {
    R row(m, n);
    Vec16<ELEMENT> w[ROW_VECTORS];
    const long long label = row.inside && row.lane == 0 ? labels[row.row] : 0;
    row.load(x, w, minus_infinity<ELEMENT>());
    const float chosen = row.inside && row.lane == 0 ? to_float(x[row.start + label]) : 0.0f;
    const Exponentials mine = exponentials_of(w, [](int, int, float) {});
    finish(row, 0, row.reduce(mine, Merge(), NONE), chosen, loss, sums);
}

// The column of the label, counted from the first element of the row's first vector.
__device__ __forceinline__ int label_of(const R& row, const long long* labels) {
    return row.inside ? (int)labels[row.row] + row.head : -1;
}

// 3. Losses and gradient with one read and one write: the row lies in the registers of a block or a cluster, as in softmax.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) cross_entropy_with_grad_rows(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, ELEMENT* __restrict__ loss, ELEMENT* __restrict__ dx,
    long long m, int n) {
    R row(m, n);
    Vec16<ELEMENT> w[ROW_VECTORS];
    const int label = label_of(row, labels);
    row.load(x, w, minus_infinity<ELEMENT>());
    const float chosen = chosen_by(row, x, labels);
    float terms[ROW_VECTORS][WIDTH];
    const Exponentials mine = exponentials_of(w, [&](int k, int e, float term) { terms[k][e] = term; });
    const Exponentials all = row.reduce(mine, Merge(), NONE);
    finish(row, row.rank, all, chosen, loss, nullptr);
    const float inverse = 1.0f / all.sum;
    if (ROW_RAW) {
        make_opaque(w);
    }
    const float scale = exponential(mine.top - all.top) * inverse;
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float p[WIDTH];
        widen(w[k], p);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            p[e] = ROW_RAW ? exponential(p[e] - all.top) * inverse : terms[k][e] * scale;
        }
        subtract_label(p, row.vector(k), label);
        row.store(dx, k, narrow<ELEMENT>(p));
    }
}

// 4. The same for rows of any length, which a block reads twice.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) cross_entropy_with_grad_chunks(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, ELEMENT* __restrict__ loss, ELEMENT* __restrict__ dx,
    long long m, int n) {
    R row(m, n);
    Vec16<ELEMENT> w[ROW_VECTORS];
    const int label = label_of(row, labels);
    const float chosen = chosen_by(row, x, labels);
    Exponentials mine = NONE;
    const int chunks = (row.vectors + ROW_VECTORS * ROW_LANES - 1) / (ROW_VECTORS * ROW_LANES);
    for (row.rank = 0; row.rank < chunks; ++row.rank) {
        row.load(x, w, minus_infinity<ELEMENT>());
        mine = Merge()(mine, exponentials_of(w, [](int, int, float) {}));
    }
    row.rank = 0;
    const Exponentials all = row.reduce(mine, Merge(), NONE);
    finish(row, 0, all, chosen, loss, nullptr);
    const float inverse = 1.0f / all.sum;
    // In reverse order, because the chunks read last are the most likely to be in L2 still.
    for (row.rank = chunks - 1; row.rank >= 0; --row.rank) {
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

#if ROW_IN_SHARED > 0
// 5. Long rows: vectors in registers and shared memory, summed as they arrive.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) cross_entropy_with_grad_on_chip(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, ELEMENT* __restrict__ loss, ELEMENT* __restrict__ dx,
    long long m, int n) {
    R row(m, n);
    OnChipRow<R, ELEMENT, ROW_LANES, ROW_IN_REGISTERS, ROW_IN_SHARED, ROW_ALIGNED> on_chip(row, x, minus_infinity<ELEMENT>());
    const int label = label_of(row, labels);
    const float chosen = chosen_by(row, x, labels);
    Exponentials mine = NONE;
    on_chip.consume(Accumulate{mine});
    const Exponentials all = row.reduce(mine, Merge(), NONE);
    finish(row, row.rank, all, chosen, loss, nullptr);
    const float inverse = 1.0f / all.sum;
    make_opaque(on_chip.register_vectors);
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float p[WIDTH];
        widen(on_chip.vector(k), p);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            p[e] = exponential(p[e] - all.top) * inverse;
        }
        subtract_label(p, row.vector(k), label);
        row.store(dx, k, narrow<ELEMENT>(p));
    }
}
#endif

// 6. The backward pass, dloss (exp(x - ln Σ exp x) - 1(label)): no reduction left, so a row is cut into `pieces` for as many
// blocks. A block has several short rows.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, ROW_RESIDENT) cross_entropy_backward(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, const float* __restrict__ sums,
    const ELEMENT* __restrict__ dloss, ELEMENT* __restrict__ dx, long long m, int n, int pieces) {
    R row(m, n);
    if (ROW_ROWS == 1) {
        row.seek(blockIdx.x / pieces);
        row.rank = blockIdx.x % pieces;
    }
    Vec16<ELEMENT> w[ROW_VECTORS];
    row.load(x, w, minus_infinity<ELEMENT>());
    const int label = label_of(row, labels);
    const float sum = row.inside ? sums[row.row] : 0.0f, slope = row.inside ? to_float(dloss[row.row]) : 0.0f;
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        float p[WIDTH];
        widen(w[k], p);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            p[e] = exponential(p[e] - sum);
        }
        subtract_label(p, row.vector(k), label);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            p[e] *= slope;
        }
        row.store(dx, k, narrow<ELEMENT>(p));
    }
}
