// `quantize_fp8`, `quantize_int8` (INT8) and `rmsnorm_quantize_fp8` (NORM) of many rows of medium length, which begin anywhere in a 16-byte vector: slabs
// of rows come into a ring of shared memory by bulk copies (slab_stages.cuh), a warp processes a row there, and the 8-bit numbers of all rows of a
// slab leave by one bulk copy, so that memory is read and written as if there were no rows. A slab has so many rows that its numbers, too, are
// whole 16-byte vectors. Their two buffers alternate. Numerics as in cuda_known_length.cu.
#include "approximate.cuh"
#include "eight_bit.cuh"
#include "slab_stages.cuh"

using T = ELEMENT;
constexpr int WIDTH = Unit<T>::WIDTH;
constexpr float LARGEST = INT8 ? 127.0f : 448.0f;  // of the format

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
            bytes[i] = pack_8_bit<INT8>(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]);
        }
        reinterpret_cast<Bits*>(row)[unit] = *reinterpret_cast<const Bits*>(bytes);
    }
}

// `smallest`: maximum of a row of zeros, and `factor_of_smallest`: LARGEST / smallest. `number_bytes`: of the numbers of a slab.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS, SLAB_BLOCKS) quantize_slab_ring(
    const T* __restrict__ x, const T* __restrict__ w, unsigned char* __restrict__ q, float* __restrict__ scales, long long m, int n, float eps,
    float smallest, float factor_of_smallest, int rows_a_slab, int tensor_bytes, int number_bytes) {
    const SlabSizes sizes{m, n, rows_a_slab, tensor_bytes};
    const long long step = (long long)gridDim.x * rows_a_slab;
    const int numbers_at = SLAB_STAGES * tensor_bytes;
    const unsigned stages = slab_address(), barriers = stages + numbers_at + 2 * number_bytes;
    auto bring = [&](int stage, long long first) {
        if (first < m) {
            const Slab slab(first, sizes);
            const int bytes = slab.in_vectors<T>() * (int)sizeof(T);
            barrier_expect(barriers + 8 * stage, bytes);
            if (bytes > 0) {
                copy_bulk(stages + stage * tensor_bytes, reinterpret_cast<const char*>(x + slab.start()), bytes, barriers + 8 * stage);
            }
        }
    };
    long long first = (long long)blockIdx.x * rows_a_slab;
    if (threadIdx.x == 0) {
#pragma unroll
        for (int stage = 0; stage < SLAB_STAGES; ++stage) {
            barrier_init(barriers + 8 * stage, 1);
        }
        barrier_init_done();
        fence_for_tma();
#pragma unroll 1
        for (int stage = 0; stage < SLAB_STAGES; ++stage) {
            bring(stage, first + stage * step);
        }
    }
    Unit<T> weight[SLAB_UNITS];
    if constexpr (NORM) {
        each_unit<T>(n, threadIdx.x % 32, [&](int k, int unit) { weight[k] = Unit<T>::of(w, unit); });
    }
    const float of_n = 1.0f / n;
    __syncthreads();
    int stage = 0, parity = 0, buffer = 0;
#pragma unroll 1
    for (; first < m; first += step) {
        const Slab slab(first, sizes);
        T* elements = slab_memory<T>(stage * tensor_bytes);
        unsigned char* numbers = slab_memory<unsigned char>(numbers_at + buffer * number_bytes);
        const int in_vectors = slab.in_vectors<T>();
        barrier_wait(barriers + 8 * stage, parity);
        if (in_vectors < slab.elements()) {
            copy_elements(x + slab.start(), elements, in_vectors, slab.elements());
            __syncthreads();
        }
        each_row<T, 1>(slab, elements, tensor_bytes, [&](const SlabRow<T, 1>& row) {
            LaneValues<T> v;
            float squares = 0.0f, most = 0.0f;
            each_unit<T>(n, row.lane, [&](int k, int unit) {
                row.read(0, k, unit).widen(v[k]);
                float weights[WIDTH];
                if constexpr (NORM) {
                    weight[k].widen(weights);
                }
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    if constexpr (NORM) {
                        squares = fmaf(v[k][e], v[k][e], squares);
                        v[k][e] *= weights[e];
                    }
                    most = larger(most, fabsf(v[k][e]));
                }
            });
#pragma unroll
            for (int apart = 16; apart > 0; apart /= 2) {
                if constexpr (NORM) {
                    squares += __shfl_xor_sync(0xffffffffu, squares, apart);
                }
                most = larger(most, __shfl_xor_sync(0xffffffffu, most, apart));
            }
            // Divisors of more than 2^126 have a denormal reciprocal.
            const float norm = NORM ? reciprocal_root(fmaf(squares, of_n, eps)) : 1.0f, of_norm = most * norm, top = larger(of_norm, smallest);
            float factor = reciprocal((NORM ? most : top) * 0.25f) * (LARGEST / 4);
            if constexpr (NORM) {
                // norm · LARGEST / (most · norm). NaN stays NaN.
                factor = of_norm >= smallest ? factor : fmaf(of_norm, 0.0f, norm * factor_of_smallest);
            }
            if (row.inside) {
                if (row.lane == 0) {
                    scales[row.number] = top * (1.0f / LARGEST);
                }
                unsigned char* to = numbers + (int)(row.number - slab.first) * n;
                each_unit<T>(n, row.lane, [&](int k, int unit) {
#pragma unroll
                    for (int e = 0; e < WIDTH; ++e) {
                        v[k][e] *= factor;
                    }
                    store_unit(to, unit, v[k]);
                });
            }
        });
        fence_for_tma();
        if (threadIdx.x == 0) {
            // The numbers of the previous slab have left their buffer, which the next slab writes.
            store_wait_read<0>();
        }
        __syncthreads();
        const int whole = slab.elements() / 16 * 16;
        unsigned char* to = q + slab.start();
        if (threadIdx.x == 0) {
            if (whole > 0) {
                write_slab(to, stages + numbers_at + buffer * number_bytes, whole);
            }
            store_commit();
            bring(stage, first + SLAB_STAGES * step);
        }
        copy_elements(numbers, to, whole, slab.elements());
        buffer ^= 1;
        if (++stage == SLAB_STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    // Shared memory must last until the stores have read it.
    if (threadIdx.x == 0) {
        store_wait();
    }
}
