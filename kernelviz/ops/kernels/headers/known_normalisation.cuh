// Normalisation of rows whose length is a constant of the kernel (KNOWN_LENGTH), for kernels of about 1 us: no division and no 64-bit index waits
// between the loads and the stores, and all loads begin together, because nothing else hides their latency. ROW_LANES threads share a row, a
// power of two up to 32 or a multiple of 32, and a block has ROW_ROWS rows. A thread has units of KNOWN_WIDTH elements, which divides a row.
// ELEMENT is float, __half or __nv_bfloat16.
#pragma once
#include "approximate.cuh"
#include "loads_first.cuh"
#include "one_element.cuh"
#include "row_units.cuh"

using T = ELEMENT;
constexpr int N = KNOWN_LENGTH, WIDTH = KNOWN_WIDTH, LANES = ROW_LANES, UNITS = N / WIDTH, EACH = (UNITS + LANES - 1) / LANES;
constexpr int WARPS = LANES > 32 ? LANES / 32 : 1;
using Bits = UnitBits<T, WIDTH>;
static_assert(N % WIDTH == 0 && (ROW_ROWS == 1 || LANES <= 32));

// `finish` gets each element of the result as an fp32 number. IS_CENTRED: layer normalisation, with the bias b. HAS_SUM: x + r is
// normalised, and stored in s. Pointers that are not used may be null.
template <bool IS_CENTRED, bool HAS_SUM, typename Finish>
__device__ __forceinline__ void normalise_known_row(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, int last_row, float eps, Finish finish) {
    __shared__ __align__(16) float slots[IS_CENTRED ? 2 : 1][WARPS];
    // Threads behind the last row process it again and store the same numbers, so that none waits for the comparison.
    const unsigned thread = blockIdx.x * (LANES * ROW_ROWS) + threadIdx.x;
    const int lane = ROW_ROWS == 1 ? threadIdx.x : thread % LANES;
    const int row = ROW_ROWS == 1 ? blockIdx.x : min((int)(thread / LANES), last_row);
    const int first = row * UNITS + lane;
    // Compile-time true where no thread is outside.
    auto has_unit = [&](int k) { return UNITS % LANES == 0 || lane + k * LANES < UNITS; };
    Bits weights[EACH], biases[EACH], xs[EACH], others[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        xs[k] = load_unit<T, WIDTH>(x, first + k * LANES, has_unit(k));
        if (HAS_SUM) {
            others[k] = load_unit<T, WIDTH>(r, first + k * LANES, has_unit(k));
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        weights[k] = load_unit<T, WIDTH>(w, lane + k * LANES, has_unit(k));
        if (IS_CENTRED) {
            biases[k] = load_unit<T, WIDTH>(b, lane + k * LANES, has_unit(k));
        }
    }
    // While the loads are in flight.
    T* const to = address_now(y + (long long)first * WIDTH);
    T* const sum_to = HAS_SUM ? address_now(s + (long long)first * WIDTH) : nullptr;
    loads_first(xs);
    loads_first(weights);
    if (HAS_SUM) {
        loads_first(others);
    }
    if (IS_CENTRED) {
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
        if (HAS_SUM) {
            float added[WIDTH];
            widen_unit<T, WIDTH>(others[k], added);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                a[k][e] += added[e];
            }
            // The sum as it is stored, so that s is the row that is normalised.
            const Bits sum = narrow_unit<T, WIDTH>(a[k]);
            widen_unit<T, WIDTH>(sum, a[k]);
            if (has_unit(k)) {
                store_unit<T, WIDTH>(sum_to, k * LANES, sum);
            }
        }
        if (IS_CENTRED) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                chains[e % 2] += a[k][e];
            }
        }
    }
    if (IS_CENTRED) {
        // Two reductions, because E[x^2] - E[x]^2 loses the variance of rows with a large mean.
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
    const float scale = reciprocal_root(row_sum(chains[0] + chains[1], IS_CENTRED ? 1 : 0) * (1.0f / N) + eps);
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        float g[WIDTH], c[WIDTH];
        widen_unit<T, WIDTH>(weights[k], g);
        if (IS_CENTRED) {
            widen_unit<T, WIDTH>(biases[k], c);
        }
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            a[k][e] = finish(IS_CENTRED ? fmaf(a[k][e] * scale, g[e], c[e]) : a[k][e] * scale * g[e]);
        }
        if (has_unit(k)) {
            store_unit<T, WIDTH>(to, k * LANES, narrow_unit<T, WIDTH>(a[k]));
        }
    }
}
