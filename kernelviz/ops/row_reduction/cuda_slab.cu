// `row_sum` and, with -DARGMAX, `argmax` of many short rows: whole rows are copied into shared memory as one piece, and a few threads
// reduce each of them there (slabs.cuh); with SLAB_ROWS, very short rows stay in registers instead. ELEMENT is float, __half or __nv_bfloat16; sums are in fp32.
#include "slabs.cuh"

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

constexpr bool TOGETHER = SLAB_ROWS > 0 && CONSECUTIVE_ROWS;

extern "C" __global__ void __launch_bounds__(SLAB_THREADS, SLAB_BLOCKS) row_slab(
    const ELEMENT* __restrict__ x, OUT* __restrict__ out, long long m, int n, int rows_a_slab, int tensor_bytes) {
    constexpr int WIDTH = Unit<ELEMENT>::WIDTH;
    SlabTensors<ELEMENT, 1, 0> tensors;
    tensors.from[0] = x;
    RowResults<OUT> results;
    process_slabs(tensors, SlabSizes{m, n, rows_a_slab, tensor_bytes}, [&](const SlabRow<ELEMENT, 1>& row) {
        Reduced reduced;
        each_unit<ELEMENT>(n, row.lane, [&](int k, int unit) {
            float values[WIDTH];
            row.read(0, k, unit).widen(values);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                reduced.add(values[e], unit * WIDTH + e);
            }
        });
#pragma unroll
        for (int distance = SLAB_LANES / 2; distance > 0; distance /= 2) {
            reduced.merge_lane(distance);
        }
        if constexpr (TOGETHER) {
            results.of[row.of_thread] = reduced.out();
        } else if (row.inside && row.lane == 0) {
            out[row.number] = reduced.out();
        }
    });
    if constexpr (TOGETHER) {
        results.store(out, m);
    }
}
