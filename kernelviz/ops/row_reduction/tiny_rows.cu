// CUDA C++ kernel of `row_sum` of many rows of LENGTH elements, of which a 16-byte vector has several. ELEMENT is float, __half or __nv_bfloat16; sums
// are in fp32. A thread has one vector and stores the sums of its rows together, so that a warp reads and writes without gaps.
#include "access_bits.cuh"
#include "vec16.cuh"

#ifndef LENGTH
#define LENGTH 1
#endif
constexpr int THREADS = 128;
using Vector = Vec16<ELEMENT>;
constexpr int ROWS = Vector::WIDTH / LENGTH;
static_assert(ROWS * LENGTH == Vector::WIDTH);
using Bits = BitsOf<ROWS * sizeof(ELEMENT)>::Type;
struct alignas(sizeof(Bits)) Sums {
    ELEMENT of[ROWS];
};

extern "C" __global__ void __launch_bounds__(THREADS) row_sum_tiny_rows(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long m) {
    const long long vector = (long long)blockIdx.x * THREADS + threadIdx.x, first = vector * ROWS;
    if (first + ROWS <= m) {
        const Vector elements = load_vec16(reinterpret_cast<const Vector*>(x) + vector);
        Sums sums;
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            float sum = to_float(elements.e[r * LENGTH]);
#pragma unroll
            for (int k = 1; k < LENGTH; ++k) {
                sum += to_float(elements.e[r * LENGTH + k]);
            }
            sums.of[r] = from_float<ELEMENT>(sum);
        }
        reinterpret_cast<Bits*>(out)[vector] = reinterpret_cast<const Bits&>(sums);
        return;
    }
    // The last rows, which are no whole vector.
#pragma unroll 1
    for (long long row = first; row < m; ++row) {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < LENGTH; ++k) {
            sum += to_float(x[row * LENGTH + k]);
        }
        out[row] = from_float<ELEMENT>(sum);
    }
}
