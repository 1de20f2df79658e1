// `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of a few long rows: several blocks share a row, in two launches.
#include "split_normalisation.cuh"

using R = Row<ELEMENT, ROW_LANES, ROW_VECTORS, 1, 1, ROW_ALIGNED>;

extern "C" __global__ void __launch_bounds__(ROW_LANES, 1536 / ROW_LANES) moments_of_parts(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ r, ELEMENT* __restrict__ s, Moments* __restrict__ partials, long long m,
    int n, int parts) {
    R row(m, n);
    part_moments<CENTRED, ADDS>(row, x, r, s, partials, parts);
}

// Weight and bias beside rows that begin within vectors take more registers.
constexpr int RESIDENT = CENTRED && !ROW_ALIGNED ? 1024 : 1536;

extern "C" __global__ void __launch_bounds__(ROW_LANES, RESIDENT / ROW_LANES) normalise_parts(
    const ELEMENT* __restrict__ from, const ELEMENT* __restrict__ w, const ELEMENT* __restrict__ b, const Moments* __restrict__ partials,
    ELEMENT* __restrict__ y, long long m, int n, int parts, float eps) {
    R row(m, n);
    normalise_from_parts<CENTRED>(row, from, w, b, partials, y, parts, eps, [](float normal) { return normal; });
}
