// `quantize_fp8`, `quantize_int8` (INT8) and `rmsnorm_quantize_fp8` (NORM) of few rows of LENGTH elements, each by ROW_LANES lanes of a warp. A kernel
// of about 1 us takes as long as the fetches of its code and one latency of memory: so all loads come first, nothing is exchanged but by shuffles,
// there is no branch, and no treatment of denormal numbers, which decide no result here.
// Rows of x and w consist of units of UNIT elements, a power of two of at most 16 bytes; as many bytes of numbers are stored at once.
#include "access_bits.cuh"
#include "adjacent_sum.cuh"
#include "approximate.cuh"
#include "eight_bit.cuh"

constexpr float LARGEST = INT8 ? 127.0f : 448.0f;  // of the format
constexpr int UNITS_OF_ROW = LENGTH / UNIT, UNITS = (UNITS_OF_ROW + ROW_LANES - 1) / ROW_LANES;

using Part = Adjacent<ELEMENT, UNIT>;
using Bits = typename BitsOf<sizeof(Part)>::Type;
template <int BYTES> struct Stored : BitsOf<BYTES> {};
template <> struct Stored<1> {
    using Type = unsigned char;
};
using Bytes = typename Stored<UNIT>::Type;

__device__ __forceinline__ bool is_inside(int lane, int k) { return (k + 1) * ROW_LANES <= UNITS_OF_ROW || k * ROW_LANES + lane < UNITS_OF_ROW; }

// The elements of a unit as fp32 numbers, of 16-bit ones two at a time.
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

// `smallest`: maximum of a row of zeros, and `factor_of_smallest`: LARGEST / smallest.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) quantize_known_length(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ w, unsigned char* __restrict__ q, float* __restrict__ scales, int last_row, float eps,
    float smallest, float factor_of_smallest) {
    // Lanes behind the last row process it again and store the same numbers.
    const unsigned thread = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    const int lane = thread % ROW_LANES, row = min((int)(thread / ROW_LANES), last_row), first = row * UNITS_OF_ROW + lane;
    Bits of_x[UNITS], of_w[UNITS];
#pragma unroll
    for (int k = 0; k < UNITS; ++k) {
        of_x[k] = of_w[k] = Bits{};
        if (is_inside(lane, k)) {
            of_x[k] = (reinterpret_cast<const Bits*>(x) + first)[k * ROW_LANES];
            if (NORM) {
                of_w[k] = (reinterpret_cast<const Bits*>(w) + lane)[k * ROW_LANES];
            }
        }
    }
    float v[UNITS][UNIT], squares = 0.0f, most = 0.0f;
#pragma unroll
    for (int k = 0; k < UNITS; ++k) {
        float weights[UNIT];
        widen_unit(of_x[k], v[k]);
        if (NORM) {
            widen_unit(of_w[k], weights);
        }
#pragma unroll
        for (int e = 0; e < UNIT; ++e) {
            if (NORM) {
                squares = fmaf(v[k][e], v[k][e], squares);
                v[k][e] *= weights[e];
            }
            most = larger(most, fabsf(v[k][e]));
        }
    }
#pragma unroll
    for (int apart = ROW_LANES / 2; apart > 0; apart /= 2) {
        if (NORM) {
            squares += __shfl_xor_sync(0xffffffffu, squares, apart);
        }
        most = larger(most, __shfl_xor_sync(0xffffffffu, most, apart));
    }
    // Divisors of more than 2^126 have a denormal reciprocal.
    const float norm = NORM ? reciprocal_root(fmaf(squares, 1.0f / LENGTH, eps)) : 1.0f, of_norm = most * norm, top = larger(of_norm, smallest);
    float factor = reciprocal((NORM ? most : top) * 0.25f) * (LARGEST / 4);
    if (NORM) {
        // norm · LARGEST / (most · norm), so that the reciprocal does not wait for the norm. NaN stays NaN.
        factor = of_norm >= smallest ? factor : fmaf(of_norm, 0.0f, norm * factor_of_smallest);
    }
    if (ROW_LANES == 1 || lane == 0) {
        scales[row] = top * (1.0f / LARGEST);
    }
#pragma unroll
    for (int k = 0; k < UNITS; ++k) {
        float scaled[(UNIT + 3) / 4 * 4] = {};
#pragma unroll
        for (int e = 0; e < UNIT; ++e) {
            scaled[e] = v[k][e] * factor;
        }
        alignas(8) unsigned bytes[(UNIT + 3) / 4];
#pragma unroll
        for (int e = 0; e < UNIT; e += 4) {
            bytes[e / 4] = pack_8_bit<INT8>(scaled[e], scaled[e + 1], scaled[e + 2], scaled[e + 3]);
        }
        if (is_inside(lane, k)) {
            (reinterpret_cast<Bytes*>(q) + first)[k * ROW_LANES] = *reinterpret_cast<const Bytes*>(bytes);
        }
    }
}
