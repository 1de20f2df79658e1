// `cross_entropy` of many short rows, its gradient, and both at once: whole rows are copied into shared memory as one piece, and a few threads
// process each of them there (slabs.cuh). A gradient replaces its row in shared memory and is written back as one piece, too.
#include "row_losses.cuh"
#include "slabs.cuh"

constexpr int WIDTH = Unit<ELEMENT>::WIDTH;

// The row that process_slabs will give this thread next. Its label, and what else it has one of, is loaded while the row before it is
// processed, and that of the first row while its slab is copied.
struct NextRow {
    const SlabSizes& sizes;
    long long first;  // row of the slab
    int begin = 0;    // of the block's rows in the slab
    __device__ __forceinline__ explicit NextRow(const SlabSizes& sizes)
        : sizes(sizes), first((long long)blockIdx.x * sizes.rows_a_slab) {}
    __device__ __forceinline__ bool exists() const { return first < sizes.m; }
    __device__ __forceinline__ int rows() const { return Slab(first, sizes).rows; }
    __device__ __forceinline__ long long number() const {
        const int wanted = begin + threadIdx.x / SLAB_LANES;
        return first + min(wanted, rows() - 1);
    }
    __device__ __forceinline__ void advance() {
        begin += SLAB_THREADS / SLAB_LANES;
        if (begin + (int)threadIdx.x / 32 * 32 / SLAB_LANES >= rows()) {
            begin = 0;
            first += (long long)gridDim.x * sizes.rows_a_slab;
        }
    }
};

// The logit of the label.
__device__ __forceinline__ float label_logit(const ELEMENT* row, int label) {
    float v[WIDTH];
    Unit<ELEMENT>::of(row, label / WIDTH).widen(v);
    return element_of(v, label % WIDTH);
}

// Losses, and ln Σ exp x for a backward pass.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS, SLAB_BLOCKS) cross_entropy_slab(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, ELEMENT* __restrict__ loss, float* __restrict__ sums, long long m,
    int n, int rows_a_slab, int tensor_bytes) {
    SlabTensors<ELEMENT, 1, 0> tensors;
    tensors.from[0] = x;
    const SlabSizes sizes{m, n, rows_a_slab, tensor_bytes};
    NextRow next(sizes);
    int next_label = (int)labels[next.number()];
    process_slabs(tensors, sizes, [&](const SlabRow<ELEMENT, 1>& row) {
        const int label = next_label;
        next.advance();
        if (next.exists()) {
            next_label = (int)labels[next.number()];
        }
        LaneValues<ELEMENT> v;
        each_unit<ELEMENT>(n, row.lane, [&](int k, int unit) { row.read(0, k, unit).widen(v[k]); });
        const float chosen = label_logit(row.of[0], label);
        const Exponentials all = exponentials_of_units<ELEMENT>(v, n, row.lane);
        if (row.inside && row.lane == 0) {
            loss[row.number] = from_float<ELEMENT>(logf(all.sum) + (all.top - chosen));
            if (sums != nullptr) {
                sums[row.number] = logf(all.sum) + all.top;
            }
        }
    });
}

// Losses and gradient. The lane that has the label's element reads it before it writes, so that none of another lane comes between.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS, SLAB_BLOCKS) cross_entropy_with_grad_slab(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, ELEMENT* __restrict__ loss, ELEMENT* __restrict__ dx, long long m,
    int n, int rows_a_slab, int tensor_bytes) {
    SlabTensors<ELEMENT, 1, 1> tensors;
    tensors.from[0] = x;
    tensors.to[0] = dx;
    const SlabSizes sizes{m, n, rows_a_slab, tensor_bytes};
    NextRow next(sizes);
    int next_label = (int)labels[next.number()];
    process_slabs(tensors, sizes, [&](const SlabRow<ELEMENT, 1>& row) {
        const int label = next_label;
        next.advance();
        if (next.exists()) {
            next_label = (int)labels[next.number()];
        }
        LaneValues<ELEMENT> v;
        each_unit<ELEMENT>(n, row.lane, [&](int k, int unit) { row.read(0, k, unit).widen(v[k]); });
        const bool writes_loss = row.inside && has_label<ELEMENT>(label, row.lane);
        const float chosen = writes_loss ? label_logit(row.of[0], label) : 0.0f;
        const Exponentials all = exponentials_of_units<ELEMENT>(v, n, row.lane);
        if (writes_loss) {
            loss[row.number] = from_float<ELEMENT>(logf(all.sum) + (all.top - chosen));
        }
        const float inverse = 1.0f / all.sum;
        each_unit<ELEMENT>(n, row.lane, [&](int k, int unit) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                v[k][e] *= inverse;
            }
            subtract_label(v[k], unit, label);
            if (row.inside) {
                row.write(0, k, unit, Unit<ELEMENT>::narrow(v[k]));
            }
        });
    });
}

// What the backward pass has one of for each row.
struct OfRow {
    int label;
    float sum, slope;
};

// dloss (exp(x - ln Σ exp x) - 1(label)): lanes of a row exchange nothing.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS, SLAB_BLOCKS) cross_entropy_backward_slab(
    const ELEMENT* __restrict__ x, const long long* __restrict__ labels, const float* __restrict__ sums, const ELEMENT* __restrict__ dloss,
    ELEMENT* __restrict__ dx, long long m, int n, int rows_a_slab, int tensor_bytes) {
    SlabTensors<ELEMENT, 1, 1> tensors;
    tensors.from[0] = x;
    tensors.to[0] = dx;
    const SlabSizes sizes{m, n, rows_a_slab, tensor_bytes};
    auto load = [&](long long row) { return OfRow{(int)labels[row], sums[row], to_float(dloss[row])}; };
    NextRow next(sizes);
    OfRow of_next = load(next.number());
    process_slabs(tensors, sizes, [&](const SlabRow<ELEMENT, 1>& row) {
        const OfRow of_row = of_next;
        next.advance();
        if (next.exists()) {
            of_next = load(next.number());
        }
        each_unit<ELEMENT>(n, row.lane, [&](int k, int unit) {
            float p[WIDTH];
            row.read(0, k, unit).widen(p);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                p[e] = exponential(p[e] - of_row.sum);
            }
            subtract_label(p, unit, of_row.label);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                p[e] *= of_row.slope;
            }
            if (row.inside) {
                row.write(0, k, unit, Unit<ELEMENT>::narrow(p));
            }
        });
    });
}
