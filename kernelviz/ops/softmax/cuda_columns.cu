// `softmax` of long rows by persistent clusters (persistent_exponentials.cuh): while one row is written, the next is summed and
// the one after it is prefetched, so that no row waits for the end of another.
#include "persistent_exponentials.cuh"

struct Softmax {
    template <typename... Known> __device__ __forceinline__ void prefetched(Known...) {}
    template <typename... Known> __device__ __forceinline__ void summed(Known...) {}
    template <typename... Known> __device__ __forceinline__ void reduced(Known...) {}
    template <typename R, int WIDTH> __device__ __forceinline__ void vector(const R&, int, float (&)[WIDTH]) const {}
};

extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_BLOCKS)
    softmax_columns(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m, int n, int* tile_counter) {
    PersistentExponentials<ELEMENT, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, COLUMNS_IN_REGISTERS, ROW_ALIGNED> columns(x, out, m, n);
    Softmax use;
    columns.walk(tile_counter, use);
}
