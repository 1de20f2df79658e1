// `quantize_fp8`, `quantize_int8` (INT8) and `rmsnorm_quantize_fp8` (NORM) of few rows of known length that have a block each: for rows of
// KNOWN_LENGTH elements, by ROW_LANES threads, a multiple of 32. A thread has units of KNOWN_WIDTH elements, which divides a row. As in
// cuda_known_length.cu all loads come first, and the largest |x w| does not wait for the scale of the norm; both reductions pass one barrier.
#include "approximate.cuh"
#include "eight_bit.cuh"
#include "loads_first.cuh"
#include "row_units.cuh"

using T = ELEMENT;
constexpr int N = KNOWN_LENGTH, WIDTH = KNOWN_WIDTH, LANES = ROW_LANES, UNITS = N / WIDTH, EACH = (UNITS + LANES - 1) / LANES;
constexpr int WARPS = LANES / 32;
constexpr float LARGEST = INT8 ? 127.0f : 448.0f;  // of the format
using Bits = UnitBits<T, WIDTH>;
template <int BYTES> struct Stored : BitsOf<BYTES> {};
template <> struct Stored<1> {
    using Type = unsigned char;
};
using Bytes = typename Stored<WIDTH>::Type;
static_assert(N % WIDTH == 0 && LANES % 32 == 0 && ROW_ROWS == 1);

#if NORM
struct Totals {
    float squares, most;
};
struct Combine {
    __device__ __forceinline__ Totals operator()(Totals a, Totals b) const { return {a.squares + b.squares, larger(a.most, b.most)}; }
};
#else
struct Totals {
    float most;
};
struct Combine {
    __device__ __forceinline__ Totals operator()(Totals a, Totals b) const { return {larger(a.most, b.most)}; }
};
#endif

// `smallest`: maximum of a row of zeros, and `factor_of_smallest`: LARGEST / smallest.
extern "C" __global__ void __launch_bounds__(LANES) quantize_known_rows(
    const T* __restrict__ x, const T* __restrict__ w, unsigned char* __restrict__ q, float* __restrict__ scales, float eps, float smallest,
    float factor_of_smallest) {
    __shared__ __align__(16) Totals slots[WARPS];
    const int lane = threadIdx.x, first = blockIdx.x * UNITS + lane;
    // Compile-time true where no thread is outside.
    auto has_unit = [&](int k) { return UNITS % LANES == 0 || lane + k * LANES < UNITS; };
    Bits xs[EACH];
#if NORM
    Bits weights[EACH];
#endif
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        xs[k] = load_unit<T, WIDTH>(x, first + k * LANES, has_unit(k));
#if NORM
        weights[k] = load_unit<T, WIDTH>(w, lane + k * LANES, has_unit(k));
#endif
    }
    loads_first(xs);
#if NORM
    loads_first(weights);
#endif
    float v[EACH][WIDTH];
    Totals totals = {};
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        widen_unit<T, WIDTH>(xs[k], v[k]);
#if NORM
        float g[WIDTH];
        widen_unit<T, WIDTH>(weights[k], g);
#endif
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
#if NORM
            totals.squares = fmaf(v[k][e], v[k][e], totals.squares);
            v[k][e] *= g[e];
#endif
            totals.most = larger(totals.most, fabsf(v[k][e]));
        }
    }
    totals = warp_reduce<32>(totals, Combine{});
    if (WARPS > 1) {
        if (threadIdx.x % 32 == 0) {
            slots[threadIdx.x / 32] = totals;
        }
        __syncthreads();
        totals = sum_of_warps(slots, Combine{});
    }
    const float most = totals.most;
    // Divisors of more than 2^126 have a denormal reciprocal.
#if NORM
    const float norm = reciprocal_root(fmaf(totals.squares, 1.0f / N, eps)), of_norm = most * norm, top = larger(of_norm, smallest);
    // norm · LARGEST / (most · norm), so that the reciprocal does not wait for the norm. NaN stays NaN.
    float factor = reciprocal(most * 0.25f) * (LARGEST / 4);
    factor = of_norm >= smallest ? factor : fmaf(of_norm, 0.0f, norm * factor_of_smallest);
#else
    const float top = larger(most, smallest), factor = reciprocal(top * 0.25f) * (LARGEST / 4);
#endif
    if (lane == 0) {
        scales[blockIdx.x] = top * (1.0f / LARGEST);
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        float scaled[(WIDTH + 3) / 4 * 4] = {};
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            scaled[e] = v[k][e] * factor;
        }
        alignas(8) unsigned bytes[(WIDTH + 3) / 4];
#pragma unroll
        for (int e = 0; e < WIDTH; e += 4) {
            bytes[e / 4] = pack_8_bit<INT8>(scaled[e], scaled[e + 1], scaled[e + 2], scaled[e + 3]);
        }
        if (has_unit(k)) {
            (reinterpret_cast<Bytes*>(q) + first)[k * LANES] = *reinterpret_cast<const Bytes*>(bytes);
        }
    }
}
