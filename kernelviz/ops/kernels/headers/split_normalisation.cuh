// Normalisation of a few long rows by several blocks each (split_rows.cuh): rmsnorm, layernorm (HAS_MEAN), add_rmsnorm (HAS_RESIDUAL), and
// what is applied to each normalised element. Pointers that an op does not have are null.
#pragma once
#include "conversions.cuh"
#include "row_beside.cuh"
#include "split_rows.cuh"

// Of some elements: how many, their mean, and the sum of their squared distances from it; without HAS_MEAN only Σ x².
struct Moments {
    float count, mean, squares;
};
template <bool HAS_MEAN> struct MergeMoments {
    __device__ __forceinline__ Moments operator()(Moments a, Moments b) const {
        if constexpr (!HAS_MEAN) {
            return {0.0f, 0.0f, a.squares + b.squares};
        } else {
            // Chan, Golub and LeVeque: the distance of the means counts as that of their elements.
            const float count = a.count + b.count, share = count > 0.0f ? b.count / count : 0.0f, away = b.mean - a.mean;
            return {count, fmaf(away, share, a.mean), a.squares + b.squares + away * away * a.count * share};
        }
    }
};
constexpr Moments NO_ELEMENTS = {0.0f, 0.0f, 0.0f};

// The sum as it is stored, so that s is the row that is normalised.
template <typename T> __device__ __forceinline__ Vec16<T> stored_sum(const Vec16<T>& x, const Vec16<T>& r) {
    float a[Vec16<T>::WIDTH], b[Vec16<T>::WIDTH];
    widen(x, a);
    widen(r, b);
#pragma unroll
    for (int e = 0; e < Vec16<T>::WIDTH; ++e) {
        a[e] += b[e];
    }
    return narrow<T>(a);
}

template <bool HAS_MEAN, bool HAS_RESIDUAL, typename R, typename T>
__device__ __forceinline__ void part_moments(
    R& row, const T* __restrict__ x, const T* __restrict__ r, T* __restrict__ s, Moments* __restrict__ partials, int parts) {
    const Piece piece(row, parts);
    Moments mine = NO_ELEMENTS;
    row.rank = piece.first;
    for (int i = 0; i < piece.count; ++i, row.rank += piece.step) {
        Vec16<T> v[ROW_VECTORS];
        row.load_or_zero(x, v);
        if constexpr (HAS_RESIDUAL) {
            Vec16<T> other[ROW_VECTORS];
            row.load_or_zero(r, other);
#pragma unroll
            for (int k = 0; k < ROW_VECTORS; ++k) {
                v[k] = stored_sum(v[k], other[k]);
                row.store(s, k, v[k]);
            }
        }
        Moments here = NO_ELEMENTS;
        if constexpr (HAS_MEAN) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < ROW_VECTORS; ++k) {
                float a[R::WIDTH];
                widen(v[k], a);
#pragma unroll
                for (int e = 0; e < R::WIDTH; ++e) {
                    sum += a[e];
                    here.count += row.holds(k, e) ? 1.0f : 0.0f;
                }
            }
            here.mean = here.count > 0.0f ? sum / here.count : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float a[R::WIDTH];
            widen(v[k], a);
#pragma unroll
            for (int e = 0; e < R::WIDTH; ++e) {
                const float away = !HAS_MEAN ? a[e] : row.holds(k, e) ? a[e] - here.mean : 0.0f;
                here.squares = fmaf(away, away, here.squares);
            }
        }
        mine = MergeMoments<HAS_MEAN>()(mine, here);
    }
    const Moments all = row.reduce(mine, MergeMoments<HAS_MEAN>(), NO_ELEMENTS);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = all;
    }
}

// `from`: x, or s where there is a residual.
template <bool HAS_MEAN, typename R, typename T, typename Activation>
__device__ __forceinline__ void normalise_from_parts(
    R& row, const T* __restrict__ from, const T* __restrict__ w, const T* __restrict__ b, const Moments* __restrict__ partials,
    T* __restrict__ y, int parts, float eps, Activation activation) {
    const Piece piece(row, parts);
    const Moments all = merged(row, partials, parts, MergeMoments<HAS_MEAN>(), NO_ELEMENTS);
    const float scale = rsqrtf(all.squares / row.n + eps);
    row.rank = piece.last();
    for (int i = 0; i < piece.count; ++i, row.rank -= piece.step) {
        Vec16<T> v[ROW_VECTORS];
        row.load_or_zero(from, v);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float a[R::WIDTH], weight[R::WIDTH], bias[R::WIDTH];
            widen(v[k], a);
            widen(beside(row, w, k), weight);
            if constexpr (HAS_MEAN) {
                widen(beside(row, b, k), bias);
            }
#pragma unroll
            for (int e = 0; e < R::WIDTH; ++e) {
                const float normal =
                    HAS_MEAN ? fmaf((a[e] - all.mean) * scale, weight[e], bias[e]) : a[e] * scale * weight[e];
                a[e] = activation(normal);
            }
            row.store(y, k, narrow<T>(a));
        }
    }
}
