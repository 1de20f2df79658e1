// `quantize_fp8`, `quantize_int8` (INT8) and `rmsnorm_quantize_fp8` (NORM) of many short rows (slabs.cuh): very short rows stay in registers,
// others pass through a ring of shared memory. Numerics as in cuda.cu, with an approximate division for the reciprocal of a scale. A row's 8-bit numbers have no 16-byte alignment of their own, so those of several rows are stored together: of the rows of a
// thread from its registers, of the rows of a warp from the shared memory where the warp has read its part of the slab.
#include "eight_bit.cuh"
#include "rows.cuh"
#include "slabs.cuh"

using T = ELEMENT;
constexpr int WIDTH = Unit<T>::WIDTH;
constexpr float LARGEST = INT8 ? 127.0f : 448.0f;  // of the format
constexpr bool TOGETHER = SLAB_ROWS > 0 && CONSECUTIVE_ROWS;

// Σ x² (NORM), max |x w|: max |y| is the latter times the scale of the norm.
struct Statistics {
    float squares, most;
};
struct Combine {
    __device__ __forceinline__ Statistics operator()(Statistics a, Statistics b) const {
        return {a.squares + b.squares, Max{}(a.most, b.most)};
    }
};

__device__ __forceinline__ unsigned packed(const float* v) { return pack_8_bit<INT8>(v[0], v[1], v[2], v[3]); }

// The numbers of consecutive rows of a thread, rounded and stored after the last row, since one store may have those of several rows.
struct ThreadNumbers {
    static constexpr int COUNT = SLAB_ROWS * SLAB_UNITS * WIDTH, CHUNK = COUNT % 16 == 0 ? 16 : COUNT % 8 == 0 ? 8 : 4;
    float of[COUNT > 0 ? COUNT : 1];
    __device__ __forceinline__ void store(unsigned char* q, long long m, int n) const {
        const RowsOfThread rows(m);
        unsigned char* to = q + rows.first * n;
        alignas(16) unsigned bytes[COUNT / 4 + 1];
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) {
            bytes[i] = packed(of + 4 * i);
        }
        if (rows.all_inside()) {
            using Bits = typename BitsOf<CHUNK>::Type;
#pragma unroll
            for (int i = 0; i < COUNT / CHUNK; ++i) {
                reinterpret_cast<Bits*>(to)[i] = reinterpret_cast<const Bits*>(bytes)[i];
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (rows.is_inside(i / (SLAB_UNITS * WIDTH))) {
                to[i] = (unsigned char)(bytes[i / 4] >> 8 * (i % 4));
            }
        }
    }
};

// The numbers of a unit, at its place in a row.
template <int COUNT> __device__ __forceinline__ void store_unit(unsigned char* row, int unit, const float (&v)[COUNT]) {
    if constexpr (COUNT == 1) {
        row[unit] = (unsigned char)pack_8_bit<INT8>(v[0], 0.0f, 0.0f, 0.0f);
    } else if constexpr (COUNT == 2) {
        reinterpret_cast<unsigned short*>(row)[unit] = (unsigned short)pack_8_bit<INT8>(v[0], v[1], 0.0f, 0.0f);
    } else {
        using Bits = typename BitsOf<COUNT>::Type;
        alignas(8) unsigned bytes[COUNT / 4];
#pragma unroll
        for (int i = 0; i < COUNT / 4; ++i) {
            bytes[i] = packed(v + 4 * i);
        }
        reinterpret_cast<Bits*>(row)[unit] = *reinterpret_cast<const Bits*>(bytes);
    }
}

// The rows of a slab that the lanes of a warp process together: their numbers replace the beginning of their elements in shared memory, which
// the warp has read, and leave from there as if there were no rows.
__device__ __forceinline__ void store_of_warp(const SlabRow<T, 1>& row, unsigned char* q, int n, const LaneValues<T>& v) {
    // A slab begins on 16 bytes of x, and a warp has the same part of each.
    constexpr int OF_SLAB = 16 / sizeof(T), OF_WARP = 32 / SLAB_LANES * WIDTH, ALIGNED = OF_SLAB < OF_WARP ? OF_SLAB : OF_WARP;
    static_assert(ALIGNED >= 4 || SLAB_ROWS > 0);
    using Bits = typename BitsOf<ALIGNED < 2 ? 2 : ALIGNED>::Type;
    // Behind the last row of a slab lanes have the last one again.
    const int mine = (int)(row.of[0] - slab_memory<T>());
    const int first = __float_as_uint(of_lane(__uint_as_float(mine), 0)), last = __float_as_uint(of_lane(__uint_as_float(mine), 31));
    const int count = last - first + n;
    unsigned char* of_warp = reinterpret_cast<unsigned char*>(slab_memory<T>() + first);
    __syncwarp();
    if (row.inside) {
        each_unit<T>(n, row.lane, [&](int k, int unit) { store_unit(of_warp + (mine - first), unit, v[k]); });
    }
    __syncwarp();
    unsigned char* to = q + (row.number * n - (mine - first));
    const int lane = threadIdx.x % 32, whole = count / ALIGNED;
#pragma unroll 2
    for (int i = lane; i < whole; i += 32) {
        reinterpret_cast<Bits*>(to)[i] = reinterpret_cast<const Bits*>(of_warp)[i];
    }
    if (whole * ALIGNED + lane < count) {
        to[whole * ALIGNED + lane] = of_warp[whole * ALIGNED + lane];
    }
    // What was written here comes before the next slab, which the copy engine writes.
    fence_for_tma();
}

extern "C" __global__ void __launch_bounds__(SLAB_THREADS, SLAB_BLOCKS) quantize_slabs(
    const T* __restrict__ x, const T* __restrict__ w, unsigned char* __restrict__ q, float* __restrict__ scales, long long m, int n, float eps,
    float smallest, int rows_a_slab, int tensor_bytes) {
    const float of_n = 1.0f / n;
    Unit<T> weight[SLAB_UNITS];
    if constexpr (NORM) {
        each_unit<T>(n, threadIdx.x % SLAB_LANES, [&](int k, int unit) { weight[k] = Unit<T>::of(w, unit); });
    }
    SlabTensors<T, 1, 0> tensors;
    tensors.from[0] = x;
    RowResults<float> scale_of;
    ThreadNumbers numbers;
    process_slabs(tensors, SlabSizes{m, n, rows_a_slab, tensor_bytes}, [&](const SlabRow<T, 1>& row) {
        LaneValues<T> v;
        Statistics statistics = {0.0f, 0.0f};
        each_unit<T>(n, row.lane, [&](int k, int unit) {
            float weights[WIDTH];
            row.read(0, k, unit).widen(v[k]);
            if constexpr (NORM) {
                weight[k].widen(weights);
            }
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                if constexpr (NORM) {
                    statistics.squares = fmaf(v[k][e], v[k][e], statistics.squares);
                    v[k][e] *= weights[e];
                }
                statistics.most = Max{}(statistics.most, fabsf(v[k][e]));
            }
        });
        float norm = 1.0f;
        if constexpr (NORM) {
            statistics = warp_reduce<SLAB_LANES>(statistics, Combine{});
            norm = rsqrtf(statistics.squares * of_n + eps);
        } else {
            statistics.most = warp_reduce<SLAB_LANES>(statistics.most, Max{});
        }
        // __fdividef returns 0 for divisors of more than 2^126.
        const float most = Max{}(statistics.most * norm, smallest), factor = norm * __fdividef(LARGEST / 4, most / 4);
        each_unit<T>(n, row.lane, [&](int k, int) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                v[k][e] *= factor;
            }
        });
        if constexpr (TOGETHER) {
            scale_of.of[row.of_thread] = most * (1.0f / LARGEST);
#pragma unroll
            for (int i = 0; i < SLAB_UNITS * WIDTH; ++i) {
                numbers.of[row.of_thread * SLAB_UNITS * WIDTH + i] = v[i / WIDTH][i % WIDTH];
            }
        } else {
            if (row.inside && row.lane == 0) {
                scales[row.number] = most * (1.0f / LARGEST);
            }
            if constexpr (SLAB_ROWS == 0) {
                store_of_warp(row, q, n, v);
            } else if (row.inside) {
                each_unit<T>(n, row.lane, [&](int k, int unit) { store_unit(q + row.number * n, unit, v[k]); });
            }
        }
    });
    if constexpr (TOGETHER) {
        scale_of.store(scales, m);
        numbers.store(q, m, n);
    }
}
