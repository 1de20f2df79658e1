// Normalisation of many short rows in shared memory (slabs.cuh): rmsnorm, layernorm (HAS_MEAN), add_rmsnorm (HAS_RESIDUAL), and what is
// applied to each normalised element. Pointers that an op does not have (to the residual r, the bias b or the stored sum s) are null.
// A thread has the same columns of every row, so that it loads its part of weight and bias once.
#pragma once
#include "rows.cuh"
#include "slabs.cuh"

template <typename T, bool HAS_MEAN, bool HAS_RESIDUAL, typename Activation>
__device__ __forceinline__ void normalise_rows(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, const SlabSizes& sizes, float eps, Activation activation) {
    constexpr int WIDTH = Unit<T>::WIDTH, TENSORS = HAS_RESIDUAL ? 2 : 1;
    const int n = sizes.n;
    const float of_n = 1.0f / n;
    Unit<T> weight[SLAB_UNITS], bias[SLAB_UNITS];
    each_unit<T>(n, threadIdx.x % SLAB_LANES, [&](int k, int unit) {
        weight[k] = Unit<T>::of(w, unit);
        if constexpr (HAS_MEAN) {
            bias[k] = Unit<T>::of(b, unit);
        }
    });
    SlabTensors<T, TENSORS, TENSORS> tensors;
    tensors.from[0] = x;
    tensors.to[TENSORS - 1] = y;
    if constexpr (HAS_RESIDUAL) {
        tensors.from[1] = r;
        tensors.to[0] = s;
    }
    process_slabs(tensors, sizes, [&](const SlabRow<T, TENSORS>& row) {
        LaneValues<T> v;
        float total = 0.0f, mean = 0.0f;
        each_unit<T>(n, row.lane, [&](int k, int unit) {
            row.read(0, k, unit).widen(v[k]);
            if constexpr (HAS_RESIDUAL) {
                float other[WIDTH];
                row.read(1, k, unit).widen(other);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    v[k][e] += other[e];
                }
                // The sum as it is stored, so that s is the row that is normalised.
                const Unit<T> sum = Unit<T>::narrow(v[k]);
                sum.widen(v[k]);
                if (row.inside) {
                    row.write(0, k, unit, sum);
                }
            }
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                total = HAS_MEAN ? total + v[k][e] : fmaf(v[k][e], v[k][e], total);
            }
        });
        total = warp_reduce<SLAB_LANES>(total, Add());
        if constexpr (HAS_MEAN) {
            // Two reductions, because E[x^2] - E[x]^2 loses the variance of rows with a large mean.
            mean = total * of_n;
            total = 0.0f;
            each_unit<T>(n, row.lane, [&](int k, int) {
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    v[k][e] -= mean;
                    total = fmaf(v[k][e], v[k][e], total);
                }
            });
            total = warp_reduce<SLAB_LANES>(total, Add());
        }
        const float scale = rsqrtf(total * of_n + eps);
        each_unit<T>(n, row.lane, [&](int k, int unit) {
            float weights[WIDTH], biases[WIDTH];
            weight[k].widen(weights);
            if constexpr (HAS_MEAN) {
                bias[k].widen(biases);
            }
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                const float normal = v[k][e] * scale;
                v[k][e] = activation(HAS_MEAN ? fmaf(normal, weights[e], biases[e]) : normal * weights[e]);
            }
            if (row.inside) {
                row.write(TENSORS - 1, k, unit, Unit<T>::narrow(v[k]));
            }
        });
    });
}
