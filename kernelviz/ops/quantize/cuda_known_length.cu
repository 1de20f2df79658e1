// `quantize_fp8`, `quantize_int8` (INT8) and `rmsnorm_quantize_fp8` (NORM) of few rows of LENGTH elements, one thread a row. A kernel of about
// 1 us takes as long as the fetches of its code: for one element the slab kernel has 4 KiB of it. Numerics as in cuda_slab.cu.
// Rows of x and w start on UNIT elements, a power of two of at most 16 bytes; rows of 8-bit numbers on STORED bytes.
#include "access_bits.cuh"
#include "adjacent_sum.cuh"
#include "eight_bit.cuh"
#include "rows.cuh"

constexpr float LARGEST = INT8 ? 127.0f : 448.0f;  // of the format

using Part = Adjacent<ELEMENT, UNIT>;
template <int BYTES> struct Stored : BitsOf<BYTES> {};
template <> struct Stored<1> {
    using Type = unsigned char;
};

extern "C" __global__ void __launch_bounds__(32) quantize_known_length(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ w, unsigned char* __restrict__ q, float* __restrict__ scales, int m, float eps,
    float smallest) {
    const int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= m) {
        return;
    }
    Part of_x[LENGTH / UNIT], of_w[LENGTH / UNIT];
#pragma unroll
    for (int k = 0; k < LENGTH / UNIT; ++k) {
        of_x[k] = reinterpret_cast<const Part*>(x + row * LENGTH)[k];
        if (NORM) {
            of_w[k] = reinterpret_cast<const Part*>(w)[k];
        }
    }
    float v[LENGTH + 3], squares = 0.0f, most = 0.0f;
#pragma unroll
    for (int i = 0; i < LENGTH + 3; ++i) {
        v[i] = 0.0f;
        if (i < LENGTH) {
            v[i] = to_float(of_x[i / UNIT].of[i % UNIT]);
            if (NORM) {
                squares = fmaf(v[i], v[i], squares);
                v[i] *= to_float(of_w[i / UNIT].of[i % UNIT]);
            }
            most = Max{}(most, fabsf(v[i]));
        }
    }
    const float norm = NORM ? rsqrtf(squares * (1.0f / LENGTH) + eps) : 1.0f;
    most = Max{}(most * norm, smallest);
    // __fdividef returns 0 for divisors of more than 2^126.
    const float factor = norm * __fdividef(LARGEST / 4, most / 4);
    scales[row] = most * (1.0f / LARGEST);
    alignas(16) unsigned bytes[(LENGTH + 3) / 4];
#pragma unroll
    for (int i = 0; i < LENGTH; i += 4) {
        bytes[i / 4] = pack_8_bit<INT8>(v[i] * factor, v[i + 1] * factor, v[i + 2] * factor, v[i + 3] * factor);
    }
    using Bytes = typename Stored<STORED>::Type;
#pragma unroll
    for (int i = 0; i < LENGTH / STORED; ++i) {
        reinterpret_cast<Bytes*>(q + row * LENGTH)[i] = reinterpret_cast<const Bytes*>(bytes)[i];
    }
}
