// `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of many short rows: a block copies whole rows into shared memory as one piece,
// a few threads normalise each of them there, and the block writes the piece back.
#include "slab_normalisation.cuh"

extern "C" __global__ void __launch_bounds__(SLAB_THREADS, 1280 / SLAB_THREADS) normalise_slabs(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ r, const ELEMENT* __restrict__ w, const ELEMENT* __restrict__ b,
    ELEMENT* __restrict__ s, ELEMENT* __restrict__ y, long long m, int n, float eps, int rows_a_slab, int tensor_bytes) {
    normalise_slab<ELEMENT, CENTRED, ADDS>(
        x, r, w, b, s, y, Slab(m, n, rows_a_slab), eps, tensor_bytes, [](float normal) { return normal; });
}
