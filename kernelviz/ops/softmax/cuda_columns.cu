// `softmax` of long rows by clusters that stay (powers.cuh): while one row is written the next is summed and
// the one after asked for, so that no row's beginning waits for another's end.
#include "powers.cuh"

struct Softmax {
    template <typename... Known> __device__ __forceinline__ void asked(Known...) {}
    template <typename... Known> __device__ __forceinline__ void summed(Known...) {}
    template <typename... Known> __device__ __forceinline__ void found(Known...) {}
    template <typename R, int WIDTH> __device__ __forceinline__ void word(const R&, int, float (&)[WIDTH]) const {}
};

extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_BLOCKS)
    softmax_columns(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m, int n, int* claims) {
    Columns<ELEMENT, ROW_LANES, ROW_WORDS, ROW_CLUSTER, COLUMNS_HELD, ROW_ALIGNED> columns(x, out, m, n);
    Softmax use;
    columns.walk(claims, use);
}
