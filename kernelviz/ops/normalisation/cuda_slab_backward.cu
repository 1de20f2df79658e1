// Backward passes of `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of many short rows: slabs of x, dy and ds pass through
// shared memory (slab_rows.cuh), dx replaces x there, and a thread has the same columns of every row of its block, so that it sums dw and db
// in registers. Formulas as in cuda_backward.cu, but mean and scale are computed again from the row: read from memory for each row, they
// would be awaited for each row.
// ONE_COLUMN: rows have one element each, and a row here is a vector of them: 2 bytes at a time, memory would wait for instructions.
#include "rows.cuh"
#include "slabs.cuh"

using T = ELEMENT;
constexpr int INPUTS = ADDS ? 3 : 2, KINDS = CENTRED ? 2 : 1;
static_assert(!ONE_COLUMN || (SLAB_UNIT == 16 && SLAB_UNITS == 1 && SLAB_LANES == 1));
constexpr int WIDTH = Unit<T>::WIDTH, WARPS = SLAB_THREADS / 32, COLUMNS = SLAB_UNITS * SLAB_LANES * WIDTH;

struct Pair {
    float of[2];
};
struct AddPairs {
    __device__ __forceinline__ Pair operator()(Pair a, Pair b) const { return {a.of[0] + b.of[0], a.of[1] + b.of[1]}; }
};

// The elements of a vector, each of which is a row: no number of another one is needed.
__device__ __forceinline__ void one_column(const SlabRow<T, INPUTS>& row, const Unit<T>& weight, LaneValues<T> (&sums)[KINDS], float eps) {
    float v[WIDTH], d[WIDTH], weights[WIDTH], added[WIDTH], out[WIDTH];
    row.read(0, 0, row.lane).widen(v);
    row.read(1, 0, row.lane).widen(d);
    if constexpr (ADDS) {
        row.read(INPUTS - 1, 0, row.lane).widen(added);
    }
    weight.widen(weights);
#pragma unroll
    for (int e = 0; e < WIDTH; ++e) {
        const float centre = CENTRED ? v[e] - v[e] : v[e], g = d[e] * weights[e];  // NaN stays NaN
        const float scale = rsqrtf(centre * centre + eps), hat = centre * scale;
        const float change = fmaf(-hat, g * hat, g) - (CENTRED ? g : 0.0f);
        out[e] = ADDS ? fmaf(change, scale, added[e]) : change * scale;
        if (row.inside) {
            sums[0][0][e] = fmaf(d[e], hat, sums[0][0][e]);
            if (CENTRED) {
                sums[KINDS - 1][0][e] += d[e];
            }
        }
    }
    if (row.inside) {
        row.write(0, 0, row.lane, Unit<T>::narrow(out));
    }
}

// 1. dx, and of each block the sums of dw and then of db, in rows of `pitch` numbers.
extern "C" __global__ void __launch_bounds__(SLAB_THREADS, SLAB_BLOCKS) backward_slabs(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ dy, const T* __restrict__ ds, T* __restrict__ dx,
    float* __restrict__ parts, long long m, int n, int pitch, float eps, int rows_a_slab, int tensor_bytes) {
    __shared__ float of_warps[KINDS][WARPS][COLUMNS];
    const int lane = threadIdx.x % SLAB_LANES;
    const float of_n = 1.0f / n;
    Unit<T> weight[SLAB_UNITS];
    LaneValues<T> sums[KINDS] = {};
    if constexpr (ONE_COLUMN) {
        float same[WIDTH];
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            same[e] = to_float(w[0]);
        }
        weight[0] = Unit<T>::narrow(same);
    } else {
        each_unit<T>(n, lane, [&](int k, int unit) { weight[k] = Unit<T>::of(w, unit); });
    }
    SlabTensors<T, INPUTS, 1> tensors;
    tensors.from[0] = x;
    tensors.from[1] = dy;
    if constexpr (ADDS) {
        tensors.from[INPUTS - 1] = ds;
    }
    tensors.to[0] = dx;
    process_slabs(tensors, SlabSizes{m, n, rows_a_slab, tensor_bytes}, [&](const SlabRow<T, INPUTS>& row) {
        if constexpr (ONE_COLUMN) {
            one_column(row, weight[0], sums, eps);
            return;
        }
        LaneValues<T> v, d;
        Unit<T> more[SLAB_UNITS];  // of ds, read before dx is written, because then each would be awaited
        // With g = dy w: of CENTRED rows first Σ x and Σ g, then like the others Σ (x - mean)² and Σ g (x - mean).
        Pair levels = {}, moments = {};
        each_unit<T>(n, row.lane, [&](int k, int unit) {
            float weights[WIDTH];
            row.read(0, k, unit).widen(v[k]);
            row.read(1, k, unit).widen(d[k]);
            if constexpr (ADDS) {
                more[k] = row.read(INPUTS - 1, k, unit);
            }
            weight[k].widen(weights);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                const float g = d[k][e] * weights[e];
                if (CENTRED) {
                    levels = AddPairs()(levels, Pair{v[k][e], g});
                } else {
                    moments = {fmaf(v[k][e], v[k][e], moments.of[0]), fmaf(g, v[k][e], moments.of[1])};
                }
            }
        });
        if (CENTRED) {
            levels = warp_reduce<SLAB_LANES>(levels, AddPairs());
            const float mean = levels.of[0] * of_n;
            each_unit<T>(n, row.lane, [&](int k, int) {
                float weights[WIDTH];
                weight[k].widen(weights);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    v[k][e] -= mean;
                    moments = {fmaf(v[k][e], v[k][e], moments.of[0]), fmaf(d[k][e] * weights[e], v[k][e], moments.of[1])};
                }
            });
        }
        moments = warp_reduce<SLAB_LANES>(moments, AddPairs());
        const float scale = rsqrtf(moments.of[0] * of_n + eps);
        const float inner = moments.of[1] * of_n * scale, level = CENTRED ? levels.of[1] * of_n : 0.0f;
        each_unit<T>(n, row.lane, [&](int k, int unit) {
            float weights[WIDTH], added[WIDTH], out[WIDTH];
            weight[k].widen(weights);
            if constexpr (ADDS) {
                more[k].widen(added);
            }
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                const float hat = v[k][e] * scale;
                const float change = fmaf(-hat, inner, d[k][e] * weights[e]) - level;
                out[e] = ADDS ? fmaf(change, scale, added[e]) : change * scale;
                // Where there is no further row, the last one must not be added again.
                if (row.inside) {
                    sums[0][k][e] = fmaf(d[k][e], hat, sums[0][k][e]);
                    if (CENTRED) {
                        sums[KINDS - 1][k][e] += d[k][e];
                    }
                }
            }
            if (row.inside) {
                row.write(0, k, unit, Unit<T>::narrow(out));
            }
        });
    });
    if constexpr (ONE_COLUMN) {
#pragma unroll
        for (int kind = 0; kind < KINDS; ++kind) {
#pragma unroll
            for (int e = 1; e < WIDTH; ++e) {
                sums[kind][0][0] += sums[kind][0][e];
            }
        }
    }
#pragma unroll
    for (int kind = 0; kind < KINDS; ++kind) {
#pragma unroll
        for (int k = 0; k < SLAB_UNITS; ++k) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                float sum = sums[kind][k][e];
#pragma unroll
                for (int apart = SLAB_LANES; apart < 32; apart *= 2) {
                    sum += __shfl_xor_sync(0xffffffffu, sum, apart);
                }
                if (threadIdx.x % 32 < SLAB_LANES) {
                    of_warps[kind][threadIdx.x / 32][(lane + k * SLAB_LANES) * WIDTH + e] = sum;
                }
            }
        }
    }
    __syncthreads();
#pragma unroll 1
    for (int column = threadIdx.x; column < (ONE_COLUMN ? 1 : n); column += SLAB_THREADS) {
#pragma unroll
        for (int kind = 0; kind < KINDS; ++kind) {
            float sum = 0.0f;
#pragma unroll
            for (int warp = 0; warp < WARPS; ++warp) {
                sum += of_warps[kind][warp][column];
            }
            parts[((long long)kind * gridDim.x + blockIdx.x) * pitch + column] = sum;
        }
    }
}

// 2. Adds up the sums of the blocks in a fixed order, those of dw, and of db where blockIdx.y is 1. A thread has 16 bytes of some blocks and
// loads four of them at once (of eight the compiler issues four, too); SUM_LANES such threads have neighbouring columns. Compiled with
// -DSUM_THREADS and -DSUM_LANES, a power of two.
constexpr int SUM_GROUPS = SUM_THREADS / SUM_LANES, SUM_WARPS = SUM_THREADS / 32, IN_FLIGHT = 4;

struct AddVectors {
    __device__ __forceinline__ float4 operator()(float4 a, float4 b) const { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
};

extern "C" __global__ void __launch_bounds__(SUM_THREADS) sum_slab_parts(
    const float* __restrict__ parts, T* __restrict__ dw, T* __restrict__ db, int count, int n, int pitch) {
    __shared__ float4 sums[SUM_WARPS][SUM_LANES];
    const int lane = threadIdx.x % SUM_LANES, group = threadIdx.x / SUM_LANES, column = (blockIdx.x * SUM_LANES + lane) * 4;
    const uint4* from = reinterpret_cast<const uint4*>(parts + blockIdx.y * count * pitch + min(column, pitch - 4));
    float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (int first = group; first < count; first += IN_FLIGHT * SUM_GROUPS) {
        // Behind the last block its sums are loaded again and not added: of loads under a condition, the compiler issued two at a time.
        uint4 loaded[IN_FLIGHT];
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i) {
            loaded[i] = from[min(first + i * SUM_GROUPS, count - 1) * (pitch / 4)];
        }
        loads_first(loaded);
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i) {
            if (first + i * SUM_GROUPS < count) {
                total = AddVectors()(total, reinterpret_cast<const float4&>(loaded[i]));
            }
        }
    }
#pragma unroll
    for (int apart = SUM_LANES; apart < 32; apart *= 2) {
        total = AddVectors()(total, shuffle_xor(total, apart));
    }
    if (threadIdx.x % 32 < SUM_LANES) {
        sums[threadIdx.x / 32][lane] = total;
    }
    __syncthreads();
    const int mine = blockIdx.x * SUM_LANES * 4 + threadIdx.x;
    if (threadIdx.x < SUM_LANES * 4 && mine < n) {
        float chains[4] = {};
#pragma unroll
        for (int warp = 0; warp < SUM_WARPS; ++warp) {
            chains[warp % 4] += reinterpret_cast<const float*>(sums[warp])[threadIdx.x];
        }
        (blockIdx.y ? db : dw)[mine] = from_float<T>((chains[0] + chains[1]) + (chains[2] + chains[3]));
    }
}
