// `norm_activation` (gelu of a layer normalisation) of few rows of LENGTH elements, each by ROW_LANES lanes of a warp. A kernel of about 1 us takes as
// long as the fetches of its code and one latency of memory: so all loads come first (Triton's kernel loads the weight and the bias once the row has
// arrived), nothing is exchanged but by shuffles, and there is no branch. Rows of x, w and b consist of units of UNIT elements, a power of two of at
// most 16 bytes.
#include "access_bits.cuh"
#include "adjacent_sum.cuh"
#include "approximate.cuh"
#include "gelu.cuh"

constexpr int UNITS_OF_ROW = LENGTH / UNIT, UNITS = (UNITS_OF_ROW + ROW_LANES - 1) / ROW_LANES;

using Part = Adjacent<ELEMENT, UNIT>;
using Bits = typename BitsOf<sizeof(Part)>::Type;

__device__ __forceinline__ bool is_inside(int lane, int k) { return (k + 1) * ROW_LANES <= UNITS_OF_ROW || k * ROW_LANES + lane < UNITS_OF_ROW; }

// The elements of a unit as fp32 numbers and back, of 16-bit ones two at a time.
__device__ __forceinline__ void widen_unit(const Bits& bits, float (&v)[UNIT]) {
    const Part& part = reinterpret_cast<const Part&>(bits);
#if UNIT > 1 && ELEMENT_BYTES == 2
#pragma unroll
    for (int e = 0; e < UNIT; e += 2) {
        const float2 both = widened(reinterpret_cast<const typename PackedPair<ELEMENT>::type*>(part.of)[e / 2]);
        v[e] = both.x;
        v[e + 1] = both.y;
    }
#else
#pragma unroll
    for (int e = 0; e < UNIT; ++e) {
        v[e] = to_float(part.of[e]);
    }
#endif
}
__device__ __forceinline__ Bits narrow_unit(const float (&v)[UNIT]) {
    Bits bits;
    Part& part = reinterpret_cast<Part&>(bits);
#if UNIT > 1 && ELEMENT_BYTES == 2
#pragma unroll
    for (int e = 0; e < UNIT; e += 2) {
        reinterpret_cast<typename PackedPair<ELEMENT>::type*>(part.of)[e / 2] = PackedPair<ELEMENT>::rounded(v[e], v[e + 1]);
    }
#else
#pragma unroll
    for (int e = 0; e < UNIT; ++e) {
        part.of[e] = from_float<ELEMENT>(v[e]);
    }
#endif
    return bits;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) layernorm_gelu_known_length(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ w, const ELEMENT* __restrict__ b, ELEMENT* __restrict__ y, int last_row, float eps) {
    // Lanes behind the last row process it again and store the same numbers.
    const unsigned thread = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    const int lane = thread % ROW_LANES, row = min((int)(thread / ROW_LANES), last_row), first = row * UNITS_OF_ROW + lane;
    Bits of_x[UNITS], of_w[UNITS], of_b[UNITS];
#pragma unroll
    for (int k = 0; k < UNITS; ++k) {
        of_x[k] = of_w[k] = of_b[k] = Bits{};
        if (is_inside(lane, k)) {
            of_x[k] = (reinterpret_cast<const Bits*>(x) + first)[k * ROW_LANES];
            of_w[k] = (reinterpret_cast<const Bits*>(w) + lane)[k * ROW_LANES];
            of_b[k] = (reinterpret_cast<const Bits*>(b) + lane)[k * ROW_LANES];
        }
    }
    float v[UNITS][UNIT], sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int k = 0; k < UNITS; ++k) {
        widen_unit(of_x[k], v[k]);
#pragma unroll
        for (int e = 0; e < UNIT; ++e) {
            sum += v[k][e];
        }
    }
    // Two reductions, because E[x^2] - E[x]^2 loses the variance of rows with a large mean.
    const float mean = lanes_sum<ROW_LANES>(sum) * (1.0f / LENGTH);
#pragma unroll
    for (int k = 0; k < UNITS; ++k) {
#pragma unroll
        for (int e = 0; e < UNIT; ++e) {
            v[k][e] = is_inside(lane, k) ? v[k][e] - mean : 0.0f;
            squares = fmaf(v[k][e], v[k][e], squares);
        }
    }
    const float scale = reciprocal_root(fmaf(lanes_sum<ROW_LANES>(squares), 1.0f / LENGTH, eps));
#pragma unroll
    for (int k = 0; k < UNITS; ++k) {
        float weights[UNIT], biases[UNIT];
        widen_unit(of_w[k], weights);
        widen_unit(of_b[k], biases);
#pragma unroll
        for (int e = 0; e < UNIT; ++e) {
            v[k][e] = gelu_polynomial<ELEMENT_BYTES == 4 ? 8 : 6>(fmaf(v[k][e] * scale, weights[e], biases[e]));
        }
        if (is_inside(lane, k)) {
            (reinterpret_cast<Bits*>(y) + first)[k * ROW_LANES] = narrow_unit(v[k]);
        }
    }
}
