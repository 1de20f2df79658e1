// `linear_cross_entropy` on Hopper's tensor cores: tiles of the logits x wᵀ, of x (m, h) and w (v, h) in bf16 or fp16, added up in fp32, are reduced in
// registers to three numbers a row: the maximum, Σ exp(z - maximum), and the logit of the label where the tile has it. combine.cu combines
// the tiles of each row. Logits are never in memory.
//
// A block has tiles of 128 rows and COLUMNS columns, one after the other. Its last warpgroup only starts the copies of TMA; each of the other two
// multiplies 64 rows, while copies for the next tile already arrive. Definitions:
//   COLUMNS   entries of the vocabulary of a tile: 128 or 256
//   STAGES    tiles of x and w in shared memory
//   CLUSTER   2 or 4: so many blocks with neighbouring rows each load an equal part of their common tile of w, for all (multicast); else 1
//   GRADIENT  1: the backward pass. The logits of `v` entries from number `first` on become dz = dloss (p - 1[label]), which TMA stores through
//             C_BOXES boxes of shared memory for each warpgroup, while the next tile begins
//   GROUP     rows of tiles that are traversed column by column, so that their rows of x are in L2
// `maps` holds two tensor maps of boxes of 64 columns, swizzled by 128 bytes: x in boxes of 128 rows, w of COLUMNS / CLUSTER rows, and of the backward
// pass dz in boxes of 64 rows. TMA fills what is outside of a matrix with zeros, and does not write there.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "row_parts.cuh"
#include "tma.cuh"
#include "warpgroups.cuh"
#include "wgmma.cuh"

constexpr int CONSUMERS = 2, ROWS = 64 * CONSUMERS, DEPTH = 64;
constexpr int WARPGROUP = 128;
constexpr int THREADS = WARPGROUP * (CONSUMERS + 1);
constexpr int X_BYTES = ROWS * DEPTH * 2, W_BYTES = DEPTH * COLUMNS * 2, BOX_BYTES = 64 * 64 * 2;
constexpr int C_BYTES = GRADIENT * CONSUMERS * C_BOXES * BOX_BYTES;
constexpr int SUMS = COLUMNS / 2;                            // of one thread
constexpr float LOG2_E = 1.4426950408889634f;
// A maximum is at least LOWEST, so that a row of -inf does not subtract -inf from -inf. OUTSIDE is below it: its exponential is zero.
constexpr float LOWEST = -1e38f, OUTSIDE = -3e38f;

#define HILBERT 0
#include "stages.cuh"
#include "tiles_in_order.cuh"
#if GRADIENT
#include "boxes_by_tma.cuh"
#endif

// All shared memory is dynamic: the stages, then dz, then the barriers.
struct Shared {
    unsigned stages, c, full, empty;

    __device__ __forceinline__ Shared(unsigned at) {
        stages = at;
        c = stages + STAGES * (X_BYTES + W_BYTES);
        full = c + C_BYTES;
        empty = full + 8 * STAGES;
    }
    __device__ __forceinline__ unsigned x(int stage) const {
        return stages + stage * (X_BYTES + W_BYTES);
    }
    __device__ __forceinline__ unsigned w(int stage) const {
        return x(stage) + X_BYTES;
    }
};

// H is contiguous: 8 rows of 128 bytes are 1024 bytes. 16 elements of H further are 32 bytes further.
__device__ __forceinline__ unsigned long long operand(unsigned tile, int step) {
    return wgmma_operand(tile + step * 32, 16, 1024);
}

// Fill one stage; by one thread. With clusters, each block sends its part of the rows of w to all of them.
__device__ __forceinline__ void fill(const Shared& shared, const char* maps, int stage, const Tile& tile, int row_of_w, int depth, int rank) {
    const unsigned full = shared.full + 8 * stage;
    const int part = rank * (COLUMNS / CLUSTER);
    barrier_expect(full, X_BYTES + W_BYTES);
    load_box(shared.x(stage), maps, depth, tile.row, full);
    load_for_cluster(shared.w(stage) + part * DEPTH * 2, maps + 128, depth, row_of_w + part, full);
}

// A stage may be filled again when all warpgroups that its copies go to have arrived, in all blocks of the cluster.
__device__ __forceinline__ void release(const Shared& shared, int stage) {
    if (threadIdx.x % WARPGROUP < CLUSTER) {
        barrier_arrive_at(shared.empty + 8 * stage, threadIdx.x % WARPGROUP);
    }
}

// The first of the two rows of a thread in its warpgroup's 64 rows; the other one is eight further. Of each eight columns it has two neighbouring ones,
// which lanes with the same lane / 4 share a row.
__device__ __forceinline__ int first_row() {
    const int t = threadIdx.x % WARPGROUP;
    return t / 32 * 16 + t % 32 / 4;
}
__device__ __forceinline__ int first_column() {
    return threadIdx.x % 4 * 2;
}

// The label of a row as a column of a tile that begins at `column0`; negative for rows after the last one.
__device__ __forceinline__ int label_in_tile(const long long* __restrict__ labels, int row, int column0, int m) {
    return row < m ? static_cast<int>(__ldg(labels + row)) - column0 : -1;
}

// Columns after the last one count nothing.
__device__ __forceinline__ void mask(float (&sums)[SUMS], int columns) {
#pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        if (i / 4 * 8 + first_column() + i % 2 >= columns) {
            sums[i] = OUTSIDE;
        }
    }
}

// Row `half` (0: the first one, 1: eight further) of a thread and of the three lanes that have the other columns of it.
template <int HALF>
__device__ __forceinline__ float2 reduced(const float (&sums)[SUMS]) {
    float top = LOWEST;
#pragma unroll
    for (int i = 2 * HALF; i < SUMS; i += 4) {
        top = fmaxf(top, fmaxf(sums[i], sums[i + 1]));
    }
    top = fmaxf(top, of_other_lane(top, 1));
    top = fmaxf(top, of_other_lane(top, 2));
    // One rounding of top · log2 e, the same one for all terms: as large as one of the maximum, which is added to the logarithm.
    const float minus_top = -top * LOG2_E;
    float total[2] = {0.0f, 0.0f};
#pragma unroll
    for (int i = 2 * HALF; i < SUMS; i += 4) {
        total[0] += exp2_fast(fmaf(sums[i], LOG2_E, minus_top));
        total[1] += exp2_fast(fmaf(sums[i + 1], LOG2_E, minus_top));
    }
    float sum = total[0] + total[1];
    sum += of_other_lane(sum, 1);
    sum += of_other_lane(sum, 2);
    return make_float2(top, sum);
}

// The logit of a label, by the thread that has it.
template <int HALF>
__device__ __forceinline__ void store_chosen(const float (&sums)[SUMS], float* __restrict__ chosen, int label) {
    const int mine = label - first_column();
    if (mine >= 0 && mine < COLUMNS && mine % 8 < 2) {
        // A store of each element with a predicate: to select one of them first takes registers that the sums leave none of.
#pragma unroll
        for (int i = 2 * HALF; i < SUMS; i += 4) {
            if (mine == i / 4 * 8) {
                *chosen = sums[i];
            }
            if (mine == i / 4 * 8 + 1) {
                *chosen = sums[i + 1];
            }
        }
    }
}

#if GRADIENT
// What a thread needs of a row: ln Σ exp in base 2, the gradient of the loss, and the column of the label.
struct Row {
    float minus_whole, slope;
    int label;

    __device__ __forceinline__ Row(
        const long long* __restrict__ labels, const float* __restrict__ whole, const ELEMENT* __restrict__ dloss, int row, int column0, int m) {
        label = label_in_tile(labels, row, column0, m) - first_column();
        minus_whole = row < m ? __ldg(whole + row) * -LOG2_E : 0.0f;
        slope = row < m ? static_cast<float>(dloss[row]) : 0.0f;
    }
};

// dz of a row of a thread, in place of its logits.
template <int HALF>
__device__ __forceinline__ void differentiate(float (&sums)[SUMS], const Row& row) {
#pragma unroll
    for (int i = 2 * HALF; i < SUMS; i += 4) {
        sums[i] = exp2_fast(fmaf(sums[i], LOG2_E, row.minus_whole));
        sums[i + 1] = exp2_fast(fmaf(sums[i + 1], LOG2_E, row.minus_whole));
    }
    if (row.label >= 0 && row.label < COLUMNS && row.label % 8 < 2) {
#pragma unroll
        for (int i = 2 * HALF; i < SUMS; i += 4) {
            sums[i] -= row.label == i / 4 * 8 ? 1.0f : 0.0f;
            sums[i + 1] -= row.label == i / 4 * 8 + 1 ? 1.0f : 0.0f;
        }
    }
#pragma unroll
    for (int i = 2 * HALF; i < SUMS; i += 4) {
        sums[i] *= row.slope;
        sums[i + 1] *= row.slope;
    }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1) linear_cross_entropy(
    const __grid_constant__ Maps<GRADIENT ? 3 : 2> maps, const long long* __restrict__ labels,
#if GRADIENT
    const float* __restrict__ whole, const ELEMENT* __restrict__ dloss, int first,
#else
    float2* __restrict__ parts, float* __restrict__ chosen,
#endif
    int m, int v, int h) {
#if !GRADIENT
    const int first = 0;
#endif
    const Shared shared(aligned_shared_memory());
    const int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
    const int tiles_m = (m + ROWS * CLUSTER - 1) / (ROWS * CLUSTER), tiles_v = (v + COLUMNS - 1) / COLUMNS;
    const int tiles = tiles_m * tiles_v;
    const int depths = (h + DEPTH - 1) / DEPTH;
    const int first_tile = blockIdx.x / CLUSTER, tile_step = gridDim.x / CLUSTER;
    const int warpgroup = threadIdx.x / WARPGROUP;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(shared.full + 8 * stage, 1);
            barrier_init(shared.empty + 8 * stage, CONSUMERS * CLUSTER);
        }
        barrier_init_done();
    }
    wait_for_cluster();

    Stage stage;
    if (warpgroup == CONSUMERS) {
        release_registers<24>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
#pragma unroll 1
            for (int number = first_tile; number < tiles; number += tile_step) {
                const Tile tile(number, tiles_m, tiles_v, rank, nullptr);
#pragma unroll 1
                for (int i = 0; i < depths; ++i, stage.next()) {
                    barrier_wait(shared.empty + 8 * stage.number, stage.parity ^ 1);
                    fill(shared, maps, stage.number, tile, first + tile.column, i * DEPTH, rank);
                }
            }
        }
        __syncwarp();  // the barrier of the cluster needs whole warps
    } else {
        take_registers<240>();
#pragma unroll 1
        for (int number = first_tile; number < tiles; number += tile_step) {
            const Tile tile(number, tiles_m, tiles_v, rank, nullptr);
            const int row = tile.row + 64 * warpgroup + first_row();
            // Before the products, so that nobody waits for them afterwards.
#if GRADIENT
            const Row above(labels, whole, dloss, row, first + tile.column, m), below(labels, whole, dloss, row + 8, first + tile.column, m);
#else
            const int label = label_in_tile(labels, row, tile.column, m), label_below = label_in_tile(labels, row + 8, tile.column, m);
#endif
            float sums[SUMS];
            int before = -1;
            for (int i = 0; i < depths; ++i, stage.next()) {
                barrier_wait(shared.full + 8 * stage.number, stage.parity);
                wgmma_fence();
#pragma unroll
                for (int step = 0; step < DEPTH / 16; ++step) {
                    const unsigned x = shared.x(stage.number) + warpgroup * (64 * DEPTH * 2);
                    wgmma<true, true>(sums, operand(x, step), operand(shared.w(stage.number), step), i > 0 || step > 0);
                }
                wgmma_commit();
                // One group may still run; the stage of the group before it is free.
                wgmma_wait<1>();
                if (before >= 0) {
                    release(shared, before);
                }
                before = stage.number;
            }
            wgmma_wait<0>();
            release(shared, before);
#if GRADIENT
            differentiate<0>(sums, above);
            differentiate<1>(sums, below);
            store_by_tma(sums, shared.c + warpgroup * C_BOXES * BOX_BYTES, maps + 256, tile.row + 64 * warpgroup, tile.column, warpgroup);
#else
            if (tile.column + COLUMNS > v) {
                mask(sums, v - tile.column);
            }
            const float2 part = reduced<0>(sums), part_below = reduced<1>(sums);
            store_chosen<0>(sums, chosen + row, label);
            store_chosen<1>(sums, chosen + row + 8, label_below);
            float2* to = parts + (long long)(tile.column / COLUMNS) * m + row;
            if (threadIdx.x % 4 == 0 && row < m) {
                to[0] = part;
            }
            if (threadIdx.x % 4 == 0 && row + 8 < m) {
                to[8] = part_below;
            }
#endif
        }
        if (GRADIENT && threadIdx.x % WARPGROUP == 0) {
            store_wait();
        }
    }
    // The shared memory of a block must last until the other one has sent everything to it.
    wait_for_cluster();
}
