// `norm_activation` (gelu of a layer normalisation) of many short rows: whole rows are copied into shared memory as one piece, a few threads
// process each of them there, and the piece is written back. With SLAB_ROWS, very short rows stay in registers instead.
#include "gelu.cuh"
#include "slab_normalisation.cuh"

extern "C" __global__ void __launch_bounds__(SLAB_THREADS, SLAB_BLOCKS) layernorm_gelu_slabs(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ w, const ELEMENT* __restrict__ b, ELEMENT* __restrict__ y, long long m,
    int n, float eps, int rows_a_slab, int tensor_bytes) {
    normalise_rows<ELEMENT, true, false>(
        x, nullptr, w, b, nullptr, y, SlabSizes{m, n, rows_a_slab, tensor_bytes}, eps,
        [](float normal) { return gelu_polynomial<sizeof(ELEMENT) == 4 ? 8 : 6>(normal); });
}
