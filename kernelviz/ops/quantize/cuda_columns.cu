// `quantize_fp8`, `quantize_int8` (INT8) and `rmsnorm_quantize_fp8` (NORM) by persistent clusters with fixed columns
// (persistent_columns.cuh): the weight stays in registers, and the next rows are prefetched while a row is stored. One pass over a row
// gives Σ x² and max|x w|, so one exchange a row is enough. Maxima are taken of the bits of magnitudes: as integers, numbers, infinity
// and NaN have the same order, a warp's maximum is one instruction, and two 16-bit elements are compared at once.
// With a weight an element takes 14 of the 20 instructions that the roof of an H200 allows in 16 bits; the compiler keeps the weight as
// fp32 numbers, which saves two instructions and takes 80 registers in all.
#include "conversions.cuh"
#include "eight_bit.cuh"
#include "persistent_columns.cuh"

using T = ELEMENT;
using W = Vec16<T>;
constexpr int WIDTH = W::WIDTH;

struct Statistics {
    float squares;      // Σ x²
    unsigned greatest;  // bits of max|x w| in fp32; without a weight those of max|x| in T
};
struct Combine {
    __device__ __forceinline__ Statistics operator()(Statistics a, Statistics b) const {
        return {NORM ? a.squares + b.squares : 0.0f, max(a.greatest, b.greatest)};
    }
};
using C = PersistentColumns<T, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, ROW_STAGES, ROW_FULL, Statistics>;

__device__ __forceinline__ float greatest_of(unsigned bits) {
    if constexpr (NORM || sizeof(T) == 4) {
        return __uint_as_float(bits);
    } else {
        const unsigned short half = (unsigned short)bits;
        return to_float(*reinterpret_cast<const T*>(&half));
    }
}

// Statistics over this warp's part of a row that has arrived.
__device__ __forceinline__ Statistics statistics_of(const C& columns, int stage, const W (&g)[NORM ? ROW_VECTORS : 1]) {
    float squares[2] = {0.0f, 0.0f}, most = 0.0f;
    unsigned greatest = 0;
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        const W vector = columns.vector(stage, k);
        if constexpr (NORM) {
            float a[WIDTH], b[WIDTH];
            widen(vector, a);
            widen(g[NORM ? k : 0], b);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                squares[e % 2] = fmaf(a[e], a[e], squares[e % 2]);
                asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(most), "f"(fabsf(a[e] * b[e])));
            }
        } else {
            const uint4 bits = *reinterpret_cast<const uint4*>(&vector);
            const unsigned piece[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                greatest = sizeof(T) == 4 ? max(greatest, piece[i] & 0x7fffffffu) : __vmaxu2(greatest, piece[i] & 0x7fff7fffu);
            }
        }
    }
    if (NORM) {
        greatest = __float_as_uint(most);
    } else if (sizeof(T) == 2) {
        greatest = max(greatest & 0xffffu, greatest >> 16);
    }
    return {NORM ? warp_reduce<32>(squares[0] + squares[1], Add{}) : 0.0f, __reduce_max_sync(0xffffffffu, greatest)};
}

__device__ __forceinline__ Statistics total_of(const Statistics* parts) {
    constexpr int STEPS = (C::PARTS + 31) / 32;
    Statistics statistics = {0.0f, 0u};
#pragma unroll
    for (int i = 0; i < STEPS; ++i) {
        const int at = i * 32 + threadIdx.x % 32;
        if (at < C::PARTS) {
            statistics = Combine{}(statistics, parts[at]);
        }
    }
    return {NORM ? warp_reduce<32>(statistics.squares, Add{}) : 0.0f, __reduce_max_sync(0xffffffffu, statistics.greatest)};
}

// The 8-bit elements of one 16-byte vector of x: one store of 8 bytes (4 if x is fp32).
struct alignas(WIDTH) Bytes {
    unsigned packed[WIDTH / 4];
};

extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_BLOCKS) quantize_columns(
    const T* __restrict__ x, const T* __restrict__ w, unsigned char* __restrict__ q, float* __restrict__ scales, long long m, int n,
    float eps, float smallest, float largest, int* tile_counter) {
    C columns(x, m, n, tile_counter);
    W g[NORM ? ROW_VECTORS : 1];
    if (NORM) {
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            g[NORM ? k : 0] = columns.load_beside(w, k);
        }
    }
    const float of_n = 1.0f / n;
    columns.start();
    columns.send(0, statistics_of(columns, 0, g));
    int stage = 0;
    long long row = columns.row(0);
    int step = 0;
    for (; row < m; ++step) {
        const int next_stage = C::next_stage(stage);
        columns.wait_until_arrived<ROW_STAGES - 2>();
        const Statistics ahead = statistics_of(columns, next_stage, g);
        const Statistics statistics = total_of(columns.receive(step));
        const long long next = columns.row(step + ROW_STAGES);
        columns.send(step + 1, ahead);

        const float norm = NORM ? rsqrtf(fmaf(statistics.squares, of_n, eps)) : 1.0f;
        const float most = Max{}(greatest_of(statistics.greatest) * norm, smallest), factor = norm * (largest / most);
        if (threadIdx.x == 0 && columns.rank == 0) {
            scales[row] = most / largest;
        }
        W v[ROW_VECTORS];
        columns.consume(stage, next, v);
        unsigned char* to = q + columns.first(row);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float a[WIDTH], b[WIDTH];
            widen(v[k], a);
            if (NORM) {
                widen(g[NORM ? k : 0], b);
            }
            Bytes bytes;
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                a[e] = (NORM ? a[e] * b[e] : a[e]) * factor;
            }
#pragma unroll
            for (int i = 0; i < WIDTH / 4; ++i) {
                bytes.packed[i] = pack_8_bit<INT8>(a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3]);
            }
            if (columns.has(k)) {
                *reinterpret_cast<Bytes*>(to + k * (ROW_LANES * WIDTH)) = bytes;
            }
        }
        stage = next_stage;
        row = columns.row(step + 1);
    }
    columns.finish(step);
}
