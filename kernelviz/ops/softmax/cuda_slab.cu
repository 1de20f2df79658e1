// `softmax` of many short rows, and its backward pass: a block copies whole rows into shared memory as one piece, a few threads process each
// of them there, and the block writes the piece back (slab_rows.cuh). Exponentials are computed twice, because shared memory keeps
// the elements as they are stored.
#include "exponentials.cuh"
#include "rows.cuh"
#include "slab_rows.cuh"

constexpr int WIDTH = Unit<ELEMENT>::WIDTH;
using Values = float[WIDTH];

// A row of nothing but -inf becomes 0 * inf = NaN, as torch's does. A NaN is ignored by the maximum and enters the sum.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS, 1536 / SLAB_THREADS) softmax_slab(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m, int n, int rows_a_slab) {
    ELEMENT* elements = slab_memory<ELEMENT>();
    const Slab slab(m, n, rows_a_slab);
    load_slab(x + slab.start(), elements, slab.elements());
    __syncthreads();
    each_row(slab, [&](int row, int lane, bool inside) {
        ELEMENT* of_row = elements + row * n;
        float top = LOWEST;
        each_unit(of_row, n, lane, [&](int, const Values& v) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                top = fmaxf(top, v[e]);
            }
        });
#pragma unroll
        for (int distance = SLAB_LANES / 2; distance > 0; distance /= 2) {
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, distance));
        }
        float sum = 0.0f;
        each_unit(of_row, n, lane, [&](int, const Values& v) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                sum += exponential(v[e] - top);
            }
        });
        const float inverse = 1.0f / warp_reduce<SLAB_LANES>(sum, Add());
        each_unit(of_row, n, lane, [&](int unit, const Values& v) {
            float y[WIDTH];
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                y[e] = exponential(v[e] - top) * inverse;
            }
            if (inside) {
                Unit<ELEMENT>::narrow(y).store(of_row, unit);
            }
        });
    });
    __syncthreads();
    store_slab(elements, out + slab.start(), slab.elements());
}

// dx = y (dy - Σ y dy); the gradient replaces y in shared memory.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS, 1536 / SLAB_THREADS) softmax_backward_slab(
    const ELEMENT* __restrict__ y, const ELEMENT* __restrict__ dy, ELEMENT* __restrict__ dx, long long m, int n, int rows_a_slab,
    int tensor_bytes) {
    ELEMENT* ys = slab_memory<ELEMENT>();
    ELEMENT* dys = slab_memory<ELEMENT>(tensor_bytes);
    const Slab slab(m, n, rows_a_slab);
    load_slab(y + slab.start(), ys, slab.elements());
    load_slab(dy + slab.start(), dys, slab.elements());
    __syncthreads();
    each_row(slab, [&](int row, int lane, bool inside) {
        ELEMENT *y_row = ys + row * n, *dy_row = dys + row * n;
        float sum = 0.0f;
        each_unit(y_row, n, lane, [&](int unit, const Values& v) {
            Values g;
            Unit<ELEMENT>::of(dy_row, unit).widen(g);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                sum = fmaf(v[e], g[e], sum);
            }
        });
        sum = warp_reduce<SLAB_LANES>(sum, Add());
        each_unit(y_row, n, lane, [&](int unit, const Values& v) {
            float g[WIDTH];
            Unit<ELEMENT>::of(dy_row, unit).widen(g);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                g[e] = v[e] * (g[e] - sum);
            }
            if (inside) {
                Unit<ELEMENT>::narrow(g).store(y_row, unit);
            }
        });
    });
    __syncthreads();
    store_slab(ys, dx + slab.start(), slab.elements());
}
