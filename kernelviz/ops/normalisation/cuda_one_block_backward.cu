// Backward passes of `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of few elements, in one launch of one block. Formulas as in
// cuda_backward.cu. All loads of a thread begin together, because each load that waits for another takes the latency of memory again: a
// thread has the same columns of some rows in registers, so nothing is read twice. The sums of rows (for dx) and those of columns (for dw
// and db) pass one barrier together, or none where one warp has all rows.
//
// ONE_BLOCK_LANES threads share a row, a power of two up to 32 or a multiple of 32; ONE_BLOCK_GROUPS of such threads share the rows. A
// thread has units of ONE_BLOCK_WIDTH elements, which divides a row. Rows and columns are constants of the kernel.
#include "loads_first.cuh"
#include "row_units.cuh"

using T = ELEMENT;
constexpr int M = ONE_BLOCK_ROWS, N = ONE_BLOCK_COLUMNS, WIDTH = ONE_BLOCK_WIDTH, LANES = ONE_BLOCK_LANES, GROUPS = ONE_BLOCK_GROUPS;
constexpr int THREADS = LANES * GROUPS, UNITS = N / WIDTH, EACH = (UNITS + LANES - 1) / LANES, ROWS = (M + GROUPS - 1) / GROUPS;
constexpr int ROW_WARPS = LANES > 32 ? LANES / 32 : 1;
// Sums of each column that the block adds up through shared memory.
constexpr int PARTS = GROUPS == 1 || M == 1 ? 1 : LANES < 32 ? THREADS / 32 : GROUPS;
constexpr int KINDS = CENTRED ? 2 : 1;
using Bits = UnitBits<T, WIDTH>;
static_assert(N % WIDTH == 0 && THREADS % 32 == 0);

// Σ g x̂ with g = dy w, and with CENTRED Σ g; or of a column Σ dy x̂ and Σ dy.
struct Sums {
    float of[KINDS];
};
struct AddSums {
    __device__ __forceinline__ Sums operator()(Sums a, Sums b) const {
#pragma unroll
        for (int i = 0; i < KINDS; ++i) {
            a.of[i] += b.of[i];
        }
        return a;
    }
};

struct Terms {
    float hat[WIDTH], d[WIDTH], g[WIDTH];
};

extern "C" __global__ void __launch_bounds__(THREADS) backward_one_block(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ dy, const T* __restrict__ ds,
    const float* __restrict__ mean, const float* __restrict__ scale, T* __restrict__ dx, T* __restrict__ dw, T* __restrict__ db) {
    __shared__ __align__(16) Sums slots[LANES > 32 ? GROUPS * ROWS : 1][ROW_WARPS];
    __shared__ float parts[KINDS][PARTS > 1 ? PARTS : 1][PARTS > 1 ? N : 1];
    const int lane = GROUPS == 1 ? threadIdx.x : threadIdx.x % LANES, group = GROUPS == 1 ? 0 : threadIdx.x / LANES;
    // Compile-time true where no thread is outside.
    auto has_row = [&](int i) { return M % GROUPS == 0 || group + i * GROUPS < M; };
    auto has_unit = [&](int k) { return UNITS % LANES == 0 || lane + k * LANES < UNITS; };

    Bits weights[EACH], xs[ROWS][EACH], dys[ROWS][EACH], dss[ROWS][EACH];
    float scales[ROWS], means[ROWS];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        weights[k] = load_unit<T, WIDTH>(w, lane + k * LANES, has_unit(k));
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int row = group + i * GROUPS;
        scales[i] = has_row(i) ? scale[row] : 0.0f;
        means[i] = CENTRED && has_row(i) ? mean[row] : 0.0f;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const int unit = row * UNITS + lane + k * LANES;
            const bool inside = has_row(i) && has_unit(k);
            xs[i][k] = load_unit<T, WIDTH>(x, unit, inside);
            dys[i][k] = load_unit<T, WIDTH>(dy, unit, inside);
            if (ADDS) {
                dss[i][k] = load_unit<T, WIDTH>(ds, unit, inside);
            }
        }
    }
    loads_first(weights);
    loads_first(xs);
    loads_first(dys);
    if (ADDS) {
        loads_first(dss);
    }

    Sums of_row[ROWS], of_column[EACH][WIDTH] = {};
    // x̂, dy and g of a thread's unit. Computed again for dx, so that they need no registers meanwhile.
    auto terms_of = [&](int i, int k) {
        Terms terms;
        widen_unit<T, WIDTH>(xs[i][k], terms.hat);
        widen_unit<T, WIDTH>(dys[i][k], terms.d);
        widen_unit<T, WIDTH>(weights[k], terms.g);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            terms.hat[e] = (CENTRED ? terms.hat[e] - means[i] : terms.hat[e]) * scales[i];
            terms.g[e] *= terms.d[e];
        }
        return terms;
    };
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        Sums chains[2] = {};
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const Terms terms = terms_of(i, k);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                Sums &chain = chains[e % 2], &column = of_column[k][e];
                chain.of[0] = fmaf(terms.g[e], terms.hat[e], chain.of[0]);
                column.of[0] = fmaf(terms.d[e], terms.hat[e], column.of[0]);
                if (CENTRED) {
                    chain.of[KINDS - 1] += terms.g[e];
                    column.of[KINDS - 1] += terms.d[e];
                }
            }
        }
        of_row[i] = warp_reduce<(LANES < 32 ? LANES : 32)>(AddSums()(chains[0], chains[1]), AddSums{});
        if (LANES > 32 && threadIdx.x % 32 == 0) {
            slots[group * ROWS + i][lane / 32] = of_row[i];
        }
    }
    if (LANES < 32 && M > 1) {
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
#pragma unroll
                for (int apart = LANES; apart < 32; apart *= 2) {
                    of_column[k][e] = AddSums()(of_column[k][e], shuffle_xor(of_column[k][e], apart));
                }
            }
        }
    }
    if (PARTS > 1) {
        const int part = LANES < 32 ? threadIdx.x / 32 : group;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            if (has_unit(k) && (LANES >= 32 || threadIdx.x % 32 < LANES)) {
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
#pragma unroll
                    for (int kind = 0; kind < KINDS; ++kind) {
                        parts[kind][part][(lane + k * LANES) * WIDTH + e] = of_column[k][e].of[kind];
                    }
                }
            }
        }
    }
    if (LANES > 32 || PARTS > 1) {
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        Sums total = of_row[i];
        if (LANES > 32) {
            total = sum_of_warps(slots[group * ROWS + i], AddSums{});
        }
        const float inner = total.of[0] * (1.0f / N), level = CENTRED ? total.of[KINDS - 1] * (1.0f / N) : 0.0f;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            float out[WIDTH], more[WIDTH];
            if (ADDS) {
                widen_unit<T, WIDTH>(dss[i][k], more);
            }
            const Terms terms = terms_of(i, k);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                const float change = fmaf(-terms.hat[e], inner, terms.g[e]) - level;
                out[e] = ADDS ? fmaf(change, scales[i], more[e]) : change * scales[i];
            }
            if (has_row(i) && has_unit(k)) {
                store_unit<T, WIDTH>(dx, (group + i * GROUPS) * UNITS + lane + k * LANES, narrow_unit<T, WIDTH>(out));
            }
        }
    }
    if constexpr (PARTS == 1) {
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            if (threadIdx.x < LANES && has_unit(k)) {
                float out[KINDS][WIDTH];
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
#pragma unroll
                    for (int kind = 0; kind < KINDS; ++kind) {
                        out[kind][e] = of_column[k][e].of[kind];
                    }
                }
                store_unit<T, WIDTH>(dw, lane + k * LANES, narrow_unit<T, WIDTH>(out[0]));
                if (CENTRED) {
                    store_unit<T, WIDTH>(db, lane + k * LANES, narrow_unit<T, WIDTH>(out[KINDS - 1]));
                }
            }
        }
    } else {
#pragma unroll 1
        for (int pass = 0; pass < (N + THREADS - 1) / THREADS; ++pass) {
            const int column = threadIdx.x + pass * THREADS;
            if (column < N) {
#pragma unroll
                for (int kind = 0; kind < KINDS; ++kind) {
                    float chains[4] = {};
#pragma unroll
                    for (int part = 0; part < PARTS; ++part) {
                        chains[part % 4] += parts[kind][part][column];
                    }
                    (kind == 0 ? dw : db)[column] = from_float<T>((chains[0] + chains[1]) + (chains[2] + chains[3]));
                }
            }
        }
    }
}
