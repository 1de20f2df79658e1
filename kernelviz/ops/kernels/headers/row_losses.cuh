// Cross-entropy of a short row that some neighbouring lanes of a warp, or one thread, have in registers as units (slab_rows.cuh).
#pragma once
#include "exponentials.cuh"
#include "label.cuh"
#include "rows.cuh"
#include "slab_rows.cuh"

// Maximum and Σ exp(x - maximum) of a row, of which each lane has some elements, and exp(x - maximum) in their place. NaN is ignored by the
// maximum and enters the sum. All lanes of the warp must take part.
template <typename T> __device__ __forceinline__ Exponentials exponentials_of_units(LaneValues<T>& v, int n, int lane) {
    float top = LOWEST, sum = 0.0f;
    each_unit<T>(n, lane, [&](int k, int) {
#pragma unroll
        for (int e = 0; e < Unit<T>::WIDTH; ++e) {
            top = fmaxf(top, v[k][e]);
        }
    });
#pragma unroll
    for (int distance = SLAB_LANES / 2; distance > 0; distance /= 2) {
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, distance));
    }
    each_unit<T>(n, lane, [&](int k, int) {
#pragma unroll
        for (int e = 0; e < Unit<T>::WIDTH; ++e) {
            v[k][e] = exponential(v[k][e] - top);
            sum += v[k][e];
        }
    });
    return {top, warp_reduce<SLAB_LANES>(sum, Add())};
}

// Whether a lane has the label's element of a row.
template <typename T> __device__ __forceinline__ bool has_label(int label, int lane) { return label / Unit<T>::WIDTH % SLAB_LANES == lane; }

// Element e of a unit, without an address of it.
template <int WIDTH> __device__ __forceinline__ float element_of(const float (&v)[WIDTH], int e) {
    float chosen = v[0];
#pragma unroll
    for (int i = 1; i < WIDTH; ++i) {
        chosen = i == e ? v[i] : chosen;
    }
    return chosen;
}
