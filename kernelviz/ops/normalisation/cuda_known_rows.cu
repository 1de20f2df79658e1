// `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of rows of known length. Only the pointers that an op has are arguments, so that all
// arguments are in one cache line of constants.
#include "known_normalisation.cuh"

extern "C" __global__ void __launch_bounds__(LANES * ROW_ROWS) normalise_known_rows(
    const T* __restrict__ x,
#if ADDS
    const T* __restrict__ r,
#endif
    const T* __restrict__ w,
#if CENTRED
    const T* __restrict__ b,
#endif
#if ADDS
    T* __restrict__ s,
#endif
    T* __restrict__ y, int last_row, float eps) {
#if !ADDS
    const T* r = nullptr;
    T* s = nullptr;
#endif
#if !CENTRED
    const T* b = nullptr;
#endif
    normalise_known_row<CENTRED, ADDS>(x, r, w, b, s, y, last_row, eps, [](float normal) { return normal; });
}
