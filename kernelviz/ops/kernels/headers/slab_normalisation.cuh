// Normalisation of many short rows in shared memory (slab_rows.cuh): rmsnorm, layernorm (HAS_MEAN), add_rmsnorm (HAS_RESIDUAL), and what is
// applied to each normalised element. Pointers that an op does not have (to the residual r, the bias b or the stored sum s) are null.
#pragma once
#include "rows.cuh"
#include "slab_rows.cuh"

// `tensor_bytes`: of the slab of x in shared memory, behind which that of r begins. y replaces x there; with HAS_RESIDUAL s replaces x, and y
// replaces r.
template <typename T, bool HAS_MEAN, bool HAS_RESIDUAL, typename Activation>
__device__ __forceinline__ void normalise_slab(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, const Slab& slab, float eps, int tensor_bytes, Activation activation) {
    constexpr int WIDTH = Unit<T>::WIDTH;
    using Values = float[WIDTH];
    T* xs = slab_memory<T>();
    T* rs = slab_memory<T>(HAS_RESIDUAL ? tensor_bytes : 0);
    load_slab(x + slab.start(), xs, slab.elements());
    if (HAS_RESIDUAL) {
        load_slab(r + slab.start(), rs, slab.elements());
    }
    __syncthreads();
    each_row(slab, [&](int row, int lane, bool inside) {
        T *x_row = xs + row * slab.n, *y_row = rs + row * slab.n;
        float mean = 0.0f, total = 0.0f;
        each_unit(x_row, slab.n, lane, [&](int unit, const Values& v) {
            float a[WIDTH];
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                a[e] = v[e];
            }
            if constexpr (HAS_RESIDUAL) {
                Values other;
                Unit<T>::of(y_row, unit).widen(other);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    // The sum as it is stored, so that s is the row that is normalised.
                    a[e] = to_float(from_float<T>(a[e] + other[e]));
                }
            }
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                total = HAS_MEAN ? total + a[e] : fmaf(a[e], a[e], total);
            }
        });
        total = warp_reduce<SLAB_LANES>(total, Add());
        if constexpr (HAS_MEAN) {
            // Two reductions, because E[x^2] - E[x]^2 loses the variance of rows with a large mean.
            mean = total / slab.n;
            total = 0.0f;
            each_unit(x_row, slab.n, lane, [&](int, const Values& v) {
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    total = fmaf(v[e] - mean, v[e] - mean, total);
                }
            });
            total = warp_reduce<SLAB_LANES>(total, Add());
        }
        const float scale = rsqrtf(total / slab.n + eps);
        each_unit(x_row, slab.n, lane, [&](int unit, const Values& v) {
            float a[WIDTH], weight[WIDTH], bias[WIDTH];
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                a[e] = v[e];
            }
            Unit<T>::of(w, unit).widen(weight);
            if constexpr (HAS_MEAN) {
                Unit<T>::of(b, unit).widen(bias);
            }
            if constexpr (HAS_RESIDUAL) {
                Values other;
                Unit<T>::of(y_row, unit).widen(other);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    a[e] = to_float(from_float<T>(a[e] + other[e]));
                }
                if (inside) {
                    Unit<T>::narrow(a).store(x_row, unit);
                }
            }
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                const float normal = HAS_MEAN ? fmaf((a[e] - mean) * scale, weight[e], bias[e]) : a[e] * scale * weight[e];
                a[e] = activation(normal);
            }
            if (inside) {
                Unit<T>::narrow(a).store(y_row, unit);
            }
        });
    });
    __syncthreads();
    if (HAS_RESIDUAL) {
        store_slab(xs, s + slab.start(), slab.elements());
    }
    store_slab(rs, y + slab.start(), slab.elements());
}
