// `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of fewer rows than there are SMs, of at most 16 KiB: a block a row, a word a
// thread. Nothing hides a wait here, so weight and bias are asked for together with the row: read after the reductions, as
// `normalise_rows` does, they are a second time all the way to memory.
#include "lanes.cuh"
#include "rows.cuh"

using T = ELEMENT;
using W = Word<T>;
using R = Row<T, ROW_LANES, 1, 1, 1, ROW_ALIGNED>;
constexpr int WIDTH = W::WIDTH;

extern "C" __global__ void __launch_bounds__(ROW_LANES) normalise_few_rows(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, long long m, int n, float eps) {
    R row(m, n);
    W v[1], other[1];
    row.load(x, v, T(0.0f));
    if (ADDS) {
        row.load(r, other, T(0.0f));
    }
    float a[WIDTH], g[WIDTH], c[WIDTH];
    widen(row.beside(w, 0), g);
    if (CENTRED) {
        widen(row.beside(b, 0), c);
    }
    widen(v[0], a);
    if (ADDS) {
        float d[WIDTH];
        widen(other[0], d);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            a[e] += d[e];
        }
        // The sum as it is stored: whoever reads s gets the row that was normalised.
        v[0] = narrow<T>(a);
        widen(v[0], a);
        row.store(s, 0, v[0]);
    }
    if (CENTRED) {
        float total = 0.0f;
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            total += a[e];
        }
        const float mean = row.reduce(total, Add{}, 0.0f) / n;
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            a[e] = row.holds(0, e) ? a[e] - mean : 0.0f;
        }
    }
    float squares = 0.0f;
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) {
        squares = fmaf(a[e], a[e], squares);
    }
    const float scale = rsqrtf(row.reduce(squares, Add{}, 0.0f) / n + eps);
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) {
        a[e] = CENTRED ? fmaf(a[e] * scale, g[e], c[e]) : a[e] * scale * g[e];
    }
    row.store(y, 0, narrow<T>(a));
}
