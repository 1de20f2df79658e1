// `norm_activation` (gelu of a layer normalisation) of a few long rows: several blocks share a row, in two launches.
#include "gelu.cuh"
#include "split_normalisation.cuh"

using R = Row<ELEMENT, ROW_LANES, ROW_VECTORS, 1, 1, ROW_ALIGNED>;

extern "C" __global__ void __launch_bounds__(ROW_LANES, 1536 / ROW_LANES) moments_of_parts(
    const ELEMENT* __restrict__ x, Moments* __restrict__ partials, long long m, int n, int parts) {
    R row(m, n);
    part_moments<true, false>(row, x, (const ELEMENT*)nullptr, (ELEMENT*)nullptr, partials, parts);
}

extern "C" __global__ void __launch_bounds__(ROW_LANES, 1024 / ROW_LANES) layernorm_gelu_parts(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ w, const ELEMENT* __restrict__ b, const Moments* __restrict__ partials,
    ELEMENT* __restrict__ y, long long m, int n, int parts, float eps) {
    R row(m, n);
    normalise_from_parts<true>(row, x, w, b, partials, y, parts, eps, [](float normal) {
        return gelu_polynomial<sizeof(ELEMENT) == 4 ? 8 : 6>(normal);
    });
}
