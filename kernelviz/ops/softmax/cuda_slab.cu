// `softmax` of many short rows, and its backward pass: whole rows are copied into shared memory as one piece, a few threads process each of them
// there, and the piece is written back (slabs.cuh). With SLAB_ROWS, very short rows stay in registers instead.
#include "exponentials.cuh"
#include "rows.cuh"
#include "slabs.cuh"

constexpr int WIDTH = Unit<ELEMENT>::WIDTH;

// A row of nothing but -inf becomes 0 * inf = NaN, as torch's does. A NaN is ignored by the maximum and enters the sum.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS, SLAB_BLOCKS) softmax_slab(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m, int n, int rows_a_slab, int tensor_bytes) {
    SlabTensors<ELEMENT, 1, 1> tensors;
    tensors.from[0] = x;
    tensors.to[0] = out;
    process_slabs(tensors, SlabSizes{m, n, rows_a_slab, tensor_bytes}, [&](const SlabRow<ELEMENT, 1>& row) {
        LaneValues<ELEMENT> v;
        float top = LOWEST;
        each_unit<ELEMENT>(n, row.lane, [&](int k, int unit) {
            row.read(0, k, unit).widen(v[k]);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                top = fmaxf(top, v[k][e]);
            }
        });
#pragma unroll
        for (int distance = SLAB_LANES / 2; distance > 0; distance /= 2) {
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, distance));
        }
        float sum = 0.0f;
        each_unit<ELEMENT>(n, row.lane, [&](int k, int) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                v[k][e] = exponential(v[k][e] - top);
                sum += v[k][e];
            }
        });
        const float inverse = 1.0f / warp_reduce<SLAB_LANES>(sum, Add());
        each_unit<ELEMENT>(n, row.lane, [&](int k, int unit) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                v[k][e] *= inverse;
            }
            if (row.inside) {
                row.write(0, k, unit, Unit<ELEMENT>::narrow(v[k]));
            }
        });
    });
}

// dx = y (dy - Σ y dy); the gradient replaces y in shared memory.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS, SLAB_BLOCKS) softmax_backward_slab(
    const ELEMENT* __restrict__ y, const ELEMENT* __restrict__ dy, ELEMENT* __restrict__ dx, long long m, int n, int rows_a_slab,
    int tensor_bytes) {
    SlabTensors<ELEMENT, 2, 1> tensors;
    tensors.from[0] = y;
    tensors.from[1] = dy;
    tensors.to[0] = dx;
    process_slabs(tensors, SlabSizes{m, n, rows_a_slab, tensor_bytes}, [&](const SlabRow<ELEMENT, 2>& row) {
        Unit<ELEMENT> of_y[SLAB_UNITS], of_dy[SLAB_UNITS];
        float sum = 0.0f;
        each_unit<ELEMENT>(n, row.lane, [&](int k, int unit) {
            of_y[k] = row.read(0, k, unit);
            of_dy[k] = row.read(1, k, unit);
            float v[WIDTH], g[WIDTH];
            of_y[k].widen(v);
            of_dy[k].widen(g);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                sum = fmaf(v[e], g[e], sum);
            }
        });
        sum = warp_reduce<SLAB_LANES>(sum, Add());
        each_unit<ELEMENT>(n, row.lane, [&](int k, int unit) {
            float v[WIDTH], g[WIDTH];
            of_y[k].widen(v);
            of_dy[k].widen(g);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                g[e] = v[e] * (g[e] - sum);
            }
            if (row.inside) {
                row.write(0, k, unit, Unit<ELEMENT>::narrow(g));
            }
        });
    });
}
