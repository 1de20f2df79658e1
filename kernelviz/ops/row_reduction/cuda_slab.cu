// `row_sum` and, with -DARGMAX, `argmax` of many short rows: a block copies whole rows into shared memory as one piece, and a few threads
// reduce each of them there (slab_rows.cuh). ELEMENT is float, __half or __nv_bfloat16; sums are in fp32.
#include "slab_rows.cuh"

template <typename V> __device__ __forceinline__ V from_lane(V value, int distance) {
    return __shfl_xor_sync(0xffffffffu, value, distance);
}

#ifdef ARGMAX
typedef long long OUT;
// The largest number so far and its index: the first of equal numbers, NaN above all, as in torch. A thread adds in ascending order.
struct Reduced {
    float value = -INFINITE;
    int at = 0x7fffffff;
    __device__ __forceinline__ void add(float v, int i) {
        if (!(v <= value) && value == value) {
            value = v;
            at = i;
        }
    }
    __device__ __forceinline__ void merge_lane(int distance) {
        const float v = from_lane(value, distance);
        const int i = from_lane(at, distance);
        const bool nan = value != value, other_nan = v != v;
        const bool above = other_nan ? !nan : v > value;
        const bool equal = other_nan ? nan : v == value;
        if (above || (equal && i < at)) {
            value = v;
            at = i;
        }
    }
    // If nothing was above -inf, all elements of the row are -inf, and the first index is as good as any.
    __device__ __forceinline__ OUT out() const { return at == 0x7fffffff ? 0 : at; }
};
#else
typedef ELEMENT OUT;
struct Reduced {
    float value = 0.0f;
    __device__ __forceinline__ void add(float v, int) { value += v; }
    __device__ __forceinline__ void merge_lane(int distance) { value += from_lane(value, distance); }
    __device__ __forceinline__ OUT out() const { return from_float<ELEMENT>(value); }
};
#endif

extern "C" __global__ void __launch_bounds__(SLAB_THREADS, 2048 / SLAB_THREADS) row_slab(
    const ELEMENT* __restrict__ x, OUT* __restrict__ out, long long m, int n, int rows_a_slab) {
    ELEMENT* elements = slab_memory<ELEMENT>();
    const Slab slab(m, n, rows_a_slab);
    load_slab(x + slab.start(), elements, slab.elements());
    __syncthreads();
    each_row(slab, [&](int row, int lane, bool inside) {
        Reduced reduced;
        each_unit(elements + row * n, n, lane, [&](int unit, const float(&values)[Unit<ELEMENT>::WIDTH]) {
#pragma unroll
            for (int e = 0; e < Unit<ELEMENT>::WIDTH; ++e) {
                reduced.add(values[e], unit * Unit<ELEMENT>::WIDTH + e);
            }
        });
#pragma unroll
        for (int distance = SLAB_LANES / 2; distance > 0; distance /= 2) {
            reduced.merge_lane(distance);
        }
        if (inside && lane == 0) {
            out[slab.first + row] = reduced.out();
        }
    });
}
