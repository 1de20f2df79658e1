// `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of many short rows: whole rows are copied into shared memory as one piece, a few
// threads normalise each of them there, and the piece is written back. With SLAB_ROWS, very short rows stay in registers instead.
#include "slab_normalisation.cuh"

extern "C" __global__ void __launch_bounds__(SLAB_THREADS, SLAB_BLOCKS) normalise_slabs(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ r, const ELEMENT* __restrict__ w, const ELEMENT* __restrict__ b,
    ELEMENT* __restrict__ s, ELEMENT* __restrict__ y, long long m, int n, float eps, int rows_a_slab, int tensor_bytes) {
    normalise_rows<ELEMENT, CENTRED, ADDS>(
        x, r, w, b, s, y, SlabSizes{m, n, rows_a_slab, tensor_bytes}, eps, [](float normal) { return normal; });
}
