// `cross_entropy` of very short rows, its gradient, and both at once: a thread has a whole row in registers, whose length is a constant
// (SLAB_UNITS units of SLAB_UNIT bytes, slab_rows.cuh), and SLAB_ROWS rows at a time, SLAB_THREADS apart, so that a warp reads the labels and
// writes the losses of consecutive rows.
#include "loads_first.cuh"
#include "row_losses.cuh"

constexpr int WIDTH = Unit<ELEMENT>::WIDTH, LENGTH = SLAB_UNITS * WIDTH;

// The rows of a thread, their logits, and their labels.
struct Rows {
    long long first;
    int left;  // rows from the first one to the last of the matrix, or more than a block has
    Unit<ELEMENT> units[SLAB_ROWS][SLAB_UNITS];
    unsigned labels[SLAB_ROWS];
    __device__ __forceinline__ Rows(const ELEMENT* x, const long long* of_labels, long long m)
        : first((long long)blockIdx.x * (SLAB_THREADS * SLAB_ROWS) + threadIdx.x),
          left((int)min(m - first, (long long)(SLAB_THREADS * SLAB_ROWS))) {
#pragma unroll
        for (int r = 0; r < SLAB_ROWS; ++r) {
            if (is_inside(r)) {
                labels[r] = (unsigned)of_labels[number(r)];
#pragma unroll
                for (int k = 0; k < SLAB_UNITS; ++k) {
                    units[r][k] = Unit<ELEMENT>::of(x + number(r) * LENGTH, k);
                }
            }
        }
    }
    __device__ __forceinline__ bool is_inside(int r) const { return r * SLAB_THREADS < left; }
    __device__ __forceinline__ long long number(int r) const { return first + r * SLAB_THREADS; }
    // To be called when all loads are issued.
    __device__ __forceinline__ void wait() {
        loads_first(labels);
#pragma unroll
        for (int r = 0; r < SLAB_ROWS; ++r) {
#pragma unroll
            for (int k = 0; k < SLAB_UNITS; ++k) {
                loads_first(units[r][k].bits);
            }
        }
    }
    __device__ __forceinline__ void widen(int r, LaneValues<ELEMENT>& v) const {
#pragma unroll
        for (int k = 0; k < SLAB_UNITS; ++k) {
            units[r][k].widen(v[k]);
        }
    }
    // The logit of the label. A long row's is loaded again, from the first-level cache, which takes fewer instructions than a choice.
    // The label is read also where there is only one class: it is an input like any other.
    __device__ __forceinline__ float chosen(int r, const LaneValues<ELEMENT>& v, const ELEMENT* x) const {
        if constexpr (LENGTH > 4) {
            return to_float(x[number(r) * LENGTH + labels[r]]);
        } else {
            float logit = 0.0f;
#pragma unroll
            for (int i = 0; i < LENGTH; ++i) {
                logit = i == (int)labels[r] ? v[i / WIDTH][i % WIDTH] : logit;
            }
            return logit;
        }
    }
    // Store p - 1(label), times `slope`.
    __device__ __forceinline__ void store(int r, LaneValues<ELEMENT>& p, float slope, ELEMENT* dx) const {
#pragma unroll
        for (int i = 0; i < LENGTH; ++i) {
            p[i / WIDTH][i % WIDTH] = (p[i / WIDTH][i % WIDTH] - (i == (int)labels[r] ? 1.0f : 0.0f)) * slope;
        }
#pragma unroll
        for (int k = 0; k < SLAB_UNITS; ++k) {
            Unit<ELEMENT>::narrow(p[k]).store(dx + number(r) * LENGTH, k);
        }
    }
};

// Losses.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS) cross_entropy_known_length(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, ELEMENT* __restrict__ loss, long long m) {
    Rows rows(x, labels, m);
    rows.wait();
#pragma unroll
    for (int r = 0; r < SLAB_ROWS; ++r) {
        if (rows.is_inside(r)) {
            LaneValues<ELEMENT> v;
            rows.widen(r, v);
            const float chosen = rows.chosen(r, v, x);
            const Exponentials all = exponentials_of_units<ELEMENT>(v, LENGTH, 0);
            loss[rows.number(r)] = from_float<ELEMENT>(logf(all.sum) + (all.top - chosen));
        }
    }
}

// Losses and gradient.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS) cross_entropy_with_grad_known_length(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, ELEMENT* __restrict__ loss, ELEMENT* __restrict__ dx, long long m) {
    Rows rows(x, labels, m);
    rows.wait();
#pragma unroll
    for (int r = 0; r < SLAB_ROWS; ++r) {
        if (rows.is_inside(r)) {
            LaneValues<ELEMENT> v;
            rows.widen(r, v);
            const float chosen = rows.chosen(r, v, x);
            const Exponentials all = exponentials_of_units<ELEMENT>(v, LENGTH, 0);
            loss[rows.number(r)] = from_float<ELEMENT>(logf(all.sum) + (all.top - chosen));
            const float inverse = 1.0f / all.sum;
#pragma unroll
            for (int i = 0; i < LENGTH; ++i) {
                v[i / WIDTH][i % WIDTH] *= inverse;
            }
            rows.store(r, v, 1.0f, dx);
        }
    }
}

// dloss (p - 1(label)). The sum of a row is computed again, because the number that the forward pass could leave is up to a fifth of what is read.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS) cross_entropy_backward_known_length(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, const ELEMENT* __restrict__ dloss, ELEMENT* __restrict__ dx,
    long long m) {
    Rows rows(x, labels, m);
    float slope[SLAB_ROWS];
#pragma unroll
    for (int r = 0; r < SLAB_ROWS; ++r) {
        if (rows.is_inside(r)) {
            slope[r] = to_float(dloss[rows.number(r)]);
        }
    }
    rows.wait();
#pragma unroll
    for (int r = 0; r < SLAB_ROWS; ++r) {
        if (rows.is_inside(r)) {
            LaneValues<ELEMENT> p;
            rows.widen(r, p);
            const float inverse = 1.0f / exponentials_of_units<ELEMENT>(p, LENGTH, 0).sum;
#pragma unroll
            for (int i = 0; i < LENGTH; ++i) {
                p[i / WIDTH][i % WIDTH] *= inverse;
            }
            rows.store(r, p, slope[r], dx);
        }
    }
}
