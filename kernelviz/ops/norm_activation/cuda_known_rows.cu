// `norm_activation` (gelu of a layer normalisation) of rows of known length that have a block each. The polynomial is the one of
// cuda_known_length.cu.
#include "gelu.cuh"
#include "known_normalisation.cuh"

extern "C" __global__ void __launch_bounds__(LANES * ROW_ROWS) layernorm_gelu_known_rows(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ y, int last_row, float eps) {
    normalise_known_row<true, false>(
        x, nullptr, w, b, nullptr, y, last_row, eps, [](float v) { return gelu_polynomial<sizeof(T) == 4 ? 8 : 6>(v); });
}
