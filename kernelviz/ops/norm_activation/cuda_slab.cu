// `norm_activation` (gelu of a layer normalisation) of many short rows: a block copies whole rows into shared memory as one piece, a few
// threads process each of them there, and the block writes the piece back.
#include "gelu.cuh"
#include "slab_normalisation.cuh"

extern "C" __global__ void __launch_bounds__(SLAB_THREADS, 1280 / SLAB_THREADS) layernorm_gelu_slabs(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ w, const ELEMENT* __restrict__ b, ELEMENT* __restrict__ y, long long m,
    int n, float eps, int rows_a_slab) {
    normalise_slab<ELEMENT, true, false>(
        x, nullptr, w, b, nullptr, y, Slab(m, n, rows_a_slab), eps, 0,
        [](float normal) { return gelu_polynomial<sizeof(ELEMENT) == 4 ? 8 : 6>(normal); });
}
