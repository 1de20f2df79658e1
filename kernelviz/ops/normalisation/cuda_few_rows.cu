// `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) for fewer rows than SMs, of at most 16 KiB: a block a row, a vector a thread.
// Nothing hides latency here, so weight and bias are loaded together with the row. Loaded after it, as in `normalise_rows`, they would
// cost the latency of memory a second time.
#include "conversions.cuh"
#include "rows.cuh"

using T = ELEMENT;
using W = Vec16<T>;
using R = Row<T, ROW_LANES, 1, 1, 1, ROW_ALIGNED>;
constexpr int WIDTH = W::WIDTH;

// Volatile, because volatile loads stay in order: the compiler moves plain loads (and prefetches) of late operands after the wait for the
// row.
__device__ __forceinline__ W load_in_order(const T* matrix, long long index) {
    uint4 bits;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
                 : "l"(reinterpret_cast<const W*>(matrix) + index));
    W loaded;
    *reinterpret_cast<uint4*>(&loaded) = bits;
    return loaded;
}

extern "C" __global__ void __launch_bounds__(ROW_LANES) normalise_few_rows(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, long long m, int n, float eps) {
    R row(m, n);
    W v[1], other[1], weight, bias;
    if (ROW_ALIGNED) {
        *reinterpret_cast<uint4*>(&v[0]) = R::filled(T(0.0f));
        weight = bias = other[0] = v[0];
        if (row.vector(0) < row.vectors) {
            const long long vector = row.start / WIDTH + row.vector(0);
            weight = load_in_order(w, row.vector(0));
            if (CENTRED) {
                bias = load_in_order(b, row.vector(0));
            }
            if (ADDS) {
                other[0] = load_in_order(r, vector);
            }
            v[0] = load_in_order(x, vector);
        }
    } else {
        weight = row.load_beside(w, 0);
        if (CENTRED) {
            bias = row.load_beside(b, 0);
        }
        if (ADDS) {
            row.load(r, other, T(0.0f));
        }
        row.load(x, v, T(0.0f));
    }
    float a[WIDTH], g[WIDTH], c[WIDTH];
    widen(v[0], a);
    if (ADDS) {
        float d[WIDTH];
        widen(other[0], d);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            a[e] += d[e];
        }
        // The sum as it is stored, so that s is the row that is normalised.
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
    widen(weight, g);
    if (CENTRED) {
        widen(bias, c);
    }
    const float scale = rsqrtf(row.reduce(squares, Add{}, 0.0f) / n + eps);
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) {
        a[e] = CENTRED ? fmaf(a[e] * scale, g[e], c[e]) : a[e] * scale * g[e];
    }
    row.store(y, 0, narrow<T>(a));
}
