// `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) for no more blocks than SMs, of rows whose length is a constant of the kernel
// (KNOWN_LENGTH): no division and no 64-bit index waits between the loads and the stores. ROW_LANES threads share a row, a power of two up to
// 32 or a multiple of 32, and a block has ROW_ROWS rows. A thread has units of KNOWN_WIDTH elements, which divides a row. All loads begin
// together, because nothing else hides their latency.
#include "loads_first.cuh"
#include "row_units.cuh"

using T = ELEMENT;
constexpr int N = KNOWN_LENGTH, WIDTH = KNOWN_WIDTH, LANES = ROW_LANES, UNITS = N / WIDTH, EACH = (UNITS + LANES - 1) / LANES;
constexpr int WARPS = LANES > 32 ? LANES / 32 : 1;
using Bits = UnitBits<T, WIDTH>;
static_assert(N % WIDTH == 0 && (ROW_ROWS == 1 || LANES <= 32));

extern "C" __global__ void __launch_bounds__(LANES * ROW_ROWS) normalise_known_rows(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, int m, float eps) {
    __shared__ __align__(16) float slots[CENTRED ? 2 : 1][WARPS];
    const int lane = ROW_ROWS == 1 ? threadIdx.x : threadIdx.x % LANES;
    const int row = ROW_ROWS == 1 ? blockIdx.x : blockIdx.x * ROW_ROWS + threadIdx.x / LANES;
    const bool is_row = ROW_ROWS == 1 || row < m;
    // Compile-time true where no thread is outside.
    auto has_unit = [&](int k) { return UNITS % LANES == 0 || lane + k * LANES < UNITS; };
    Bits weights[EACH], biases[EACH], xs[EACH], others[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int unit = lane + k * LANES;
        xs[k] = load_unit<T, WIDTH>(x, row * UNITS + unit, is_row && has_unit(k));
        if (ADDS) {
            others[k] = load_unit<T, WIDTH>(r, row * UNITS + unit, is_row && has_unit(k));
        }
        weights[k] = load_unit<T, WIDTH>(w, unit, has_unit(k));
        if (CENTRED) {
            biases[k] = load_unit<T, WIDTH>(b, unit, has_unit(k));
        }
    }
    loads_first(xs);
    loads_first(weights);
    if (ADDS) {
        loads_first(others);
    }
    if (CENTRED) {
        loads_first(biases);
    }

    auto row_sum = [&](float v, int reduction) {
        v = warp_reduce<(LANES < 32 ? LANES : 32)>(v, Add{});
        if (WARPS > 1) {
            if (threadIdx.x % 32 == 0) {
                slots[reduction][threadIdx.x / 32] = v;
            }
            __syncthreads();
            v = sum_of_warps(slots[reduction], Add{});
        }
        return v;
    };
    float a[EACH][WIDTH], chains[2] = {};
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        widen_unit<T, WIDTH>(xs[k], a[k]);
        if (ADDS) {
            float added[WIDTH];
            widen_unit<T, WIDTH>(others[k], added);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                a[k][e] += added[e];
            }
            // The sum as it is stored, so that s is the row that is normalised.
            const Bits sum = narrow_unit<T, WIDTH>(a[k]);
            widen_unit<T, WIDTH>(sum, a[k]);
            if (is_row && has_unit(k)) {
                store_unit<T, WIDTH>(s, row * UNITS + lane + k * LANES, sum);
            }
        }
        if (CENTRED) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                chains[e % 2] += a[k][e];
            }
        }
    }
    if (CENTRED) {
        const float mean = row_sum(chains[0] + chains[1], 0) * (1.0f / N);
        chains[0] = chains[1] = 0.0f;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                a[k][e] = has_unit(k) ? a[k][e] - mean : 0.0f;
            }
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            chains[e % 2] = fmaf(a[k][e], a[k][e], chains[e % 2]);
        }
    }
    const float scale = rsqrtf(row_sum(chains[0] + chains[1], CENTRED ? 1 : 0) * (1.0f / N) + eps);
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        float g[WIDTH], c[WIDTH];
        widen_unit<T, WIDTH>(weights[k], g);
        if (CENTRED) {
            widen_unit<T, WIDTH>(biases[k], c);
        }
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            a[k][e] = CENTRED ? fmaf(a[k][e] * scale, g[e], c[e]) : a[k][e] * scale * g[e];
        }
        if (is_row && has_unit(k)) {
            store_unit<T, WIDTH>(y, row * UNITS + lane + k * LANES, narrow_unit<T, WIDTH>(a[k]));
        }
    }
}
