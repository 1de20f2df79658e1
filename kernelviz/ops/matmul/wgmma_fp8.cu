// Products of 8-bit floats (e4m3) on Hopper's tensor cores: C (m, n, bf16) = scales · A (m, k) Bᵀ (B: n, k), all row-major, so that K is contiguous
// in both operands, as the instruction needs. It is the CUDA C++ ladder of `scaled_matmul` and `block_scaled_matmul`.
//
// Warpgroups 0 and 1 multiply, each 64 of the 128 rows of a tile; a third one copies by TMA. Definitions:
//   COLUMNS     columns of a tile of C: 128, 192 or 256. In two levels, with 192 the sums of 128 of K for all columns fit into registers beside the sums
//               of the tile: one instruction has all columns, so A is read from shared memory once and there are fewer waits
//   STAGES      tiles of A and B in shared memory, each 128 of K deep
//   TWO_LEVEL   0: the tensor core adds up all of K, with about 14 bits; 1: it adds up 128 of K, and these sums are added in fp32
//   BLOCKS      0: one scale for A and one for B; 1: one for each 128 of K of a row of A and for each 128×128 of B (needs TWO_LEVEL)
//   CLUSTER     2: two blocks with neighbouring rows each load a half of their common tile of B, for both (multicast)
//   C_BOXES     boxes of shared memory of each warpgroup through which TMA stores C while the next tile begins
//   HILBERT     1: the tiles are computed in the order of a table; 0: in groups of GROUP rows of tiles, which find B in the L2
// `maps` holds three tensor maps swizzled by 128 bytes: A in boxes of 128 rows, B in boxes of COLUMNS / CLUSTER rows, C in boxes of 64×64. TMA fills
// what is outside of a matrix with zeros, and does not write there.
#include <cuda_bf16.h>

#include "tma.cuh"
#include "warpgroups.cuh"
#include "wgmma_fp8.cuh"

constexpr int CONSUMERS = 2, ROWS = 64 * CONSUMERS, DEPTH = 128, STEP = 32;
constexpr int WARPGROUP = 128;
constexpr int THREADS = WARPGROUP * (CONSUMERS + 1);
constexpr int A_BYTES = ROWS * DEPTH, B_BYTES = COLUMNS * DEPTH, BOX_BYTES = 64 * 64 * 2;
constexpr int C_BYTES = CONSUMERS * C_BOXES * BOX_BYTES;
constexpr int BOXES_OF_C = COLUMNS / 64;
constexpr int SUMS = COLUMNS / 2;                           // of one thread
constexpr int PART_COLUMNS = TWO_LEVEL && COLUMNS != 192 ? 128 : COLUMNS;  // of one instruction
constexpr int PARTS = COLUMNS / PART_COLUMNS, PART_SUMS = PART_COLUMNS / 2;
constexpr int BLOCKS_OF_B = (COLUMNS + 127) / 128;  // of 128 columns, of which a tile has scales: 192 columns are in two of them
static_assert(BOXES_OF_C % C_BOXES == 0, "a box is filled again after as many stores as there are boxes");
static_assert(TWO_LEVEL || !BLOCKS, "only sums of one block of K can be scaled");

#include "stages.cuh"
#include "tiles_in_order.cuh"

// All shared memory is dynamic: the stages, then C, then the barriers.
struct Shared {
    unsigned stages, c, full, empty;

    __device__ __forceinline__ Shared() {
        stages = aligned_shared_memory();
        c = stages + STAGES * (A_BYTES + B_BYTES);
        full = c + C_BYTES;
        empty = full + 8 * STAGES;
    }
    __device__ __forceinline__ unsigned a(int stage) const {
        return stages + stage * (A_BYTES + B_BYTES);
    }
    __device__ __forceinline__ unsigned b(int stage) const {
        return a(stage) + A_BYTES;
    }
};

// 8 rows of 128 bytes are 1024 bytes; 32 elements of K further are 32 bytes further.
__device__ __forceinline__ unsigned long long operand(unsigned tile, int step) {
    return wgmma_operand(tile + step * STEP, 16, 1024);
}

// --- tiles ------------------------------------------------------------------------------------------------------------------------
// Fill one stage; by one thread.
__device__ __forceinline__ void fill(const Shared& shared, const char* maps, int stage, const Tile& tile, int depth, int rank) {
    const unsigned full = shared.full + 8 * stage;
    barrier_expect(full, A_BYTES + B_BYTES);
    load_box(shared.a(stage), maps, depth, tile.row, full);
    const int part = rank * (COLUMNS / CLUSTER);
    if (CLUSTER > 1) {
        load_box_for((1 << CLUSTER) - 1, shared.b(stage) + part * DEPTH, maps + 128, depth, tile.column + part, full);
    } else {
        load_box(shared.b(stage), maps + 128, depth, tile.column, full);
    }
}

// One stage: 128 of K for 64 rows and PART_COLUMNS columns.
__device__ __forceinline__ void multiply(float (&sums)[PART_SUMS], unsigned a_tile, unsigned b_tile, bool first) {
#pragma unroll
    for (int step = 0; step < DEPTH / STEP; ++step) {
        wgmma_fp8(sums, operand(a_tile, step), operand(b_tile, step), !first || step > 0);
    }
}

// --- scales -----------------------------------------------------------------------------------------------------------------------
// The scales of one block of K that a thread needs: of its two rows of A, and of each 128 columns of its tile.
struct Scales {
    float low, high;
    float of_b[BLOCKS_OF_B];
};

// Where a thread finds them. Rows and columns outside of C have the scales of the last ones, which changes only what is not stored.
struct ScalePointers {
    const float *low, *high;
    const float* of_b[BLOCKS_OF_B];
    int row_length;
    bool begins_within;  // a tile of 192 columns begins in the middle of a block of 128 columns

    __device__ __forceinline__ ScalePointers(
        const float* __restrict__ a_scales, const float* __restrict__ b_scales, int row, int column, int m, int n, int blocks_of_k)
        : row_length(m), begins_within(column % 128 != 0) {
        low = a_scales + min(row, m - 1);
        high = a_scales + min(row + 8, m - 1);
#pragma unroll
        for (int block = 0; block < BLOCKS_OF_B; ++block) {
            of_b[block] = b_scales + (long long)min(column / 128 + block, (n - 1) / 128) * blocks_of_k;
        }
    }
    __device__ __forceinline__ Scales at(int block) const {
        Scales scales;
        scales.low = load_early(low + (long long)block * row_length);
        scales.high = load_early(high + (long long)block * row_length);
#pragma unroll
        for (int i = 0; i < BLOCKS_OF_B; ++i) {
            scales.of_b[i] = load_early(of_b[i] + block);
        }
        return scales;
    }
};

// --- C ----------------------------------------------------------------------------------------------------------------------------
__device__ __forceinline__ unsigned pair(float low, float high) {
    const __nv_bfloat16 two[2] = {static_cast<__nv_bfloat16>(low), static_cast<__nv_bfloat16>(high)};
    return *reinterpret_cast<const unsigned*>(two);
}

// Through shared memory, a box of 64 columns at a time, with TMA's swizzle: the eight rows of a matrix lie in different banks.
// A thread has of each eight columns two neighbouring ones, in a row and in the row eight further.
__device__ __forceinline__ void store(
    const float (&sums)[SUMS], unsigned boxes, const char* map, float scale, int row0, int column0, int warpgroup) {
    const int t = threadIdx.x % WARPGROUP;
    const int lane = t % 32;
    const bool leader = t == 0;
    // The matrices of a store: rows 0 to 7 and 8 to 15 of eight columns, and of the next eight columns.
    const int row = t / 32 * 16 + lane / 8 % 2 * 8 + lane % 8;
    const int next_eight = lane / 16;
#pragma unroll
    for (int box = 0; box < BOXES_OF_C; ++box) {
        const unsigned to = boxes + box % C_BOXES * BOX_BYTES;
        if (leader) {
            store_wait_read<C_BOXES - 1>();  // the store that read this box has ended
        }
        warpgroup_barrier(warpgroup);
#pragma unroll
        for (int eight = 0; eight < 8; eight += 2) {
            const float* part = sums + 32 * box + 4 * eight;
            store_matrices(
                to + row * 128 + ((eight + next_eight ^ lane % 8) << 4), pair(part[0] * scale, part[1] * scale),
                pair(part[2] * scale, part[3] * scale), pair(part[4] * scale, part[5] * scale), pair(part[6] * scale, part[7] * scale));
        }
        fence_for_tma();
        warpgroup_barrier(warpgroup);
        if (leader) {
            store_box(to, map, column0 + 64 * box, row0);
            store_commit();
        }
    }
}

// Tell all blocks of the cluster that this warpgroup has multiplied what is in a stage.
__device__ __forceinline__ void release(const Shared& shared, int stage) {
    if (threadIdx.x % WARPGROUP < CLUSTER) {
        barrier_arrive_at(shared.empty + 8 * stage, threadIdx.x % WARPGROUP);
    }
}

#if !TWO_LEVEL
// One level: the tensor core adds up all of K. One stage is multiplied while the one before it is released.
__device__ __forceinline__ void multiply_tile(float (&sums)[SUMS], const Shared& shared, Stage& stage, int depths, int warpgroup) {
    int before = -1;
    for (int i = 0; i < depths; ++i, stage.next()) {
        barrier_wait(shared.full + 8 * stage.number, stage.parity);
        wgmma_fence();
        multiply(sums, shared.a(stage.number) + warpgroup * (64 * DEPTH), shared.b(stage.number), i == 0);
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
}

#else
// Two levels: the tensor core adds up 128 of K, and then these sums are scaled and added in fp32.

// Scale the sums of one block of K and add them to those of the tile.
__device__ __forceinline__ void add_scaled(
    float (&sums)[SUMS], const float (&of_block)[PART_SUMS], int part, const Scales& scales, bool begins_within) {
#pragma unroll
    for (int sixty_four = 0; sixty_four < PART_COLUMNS / 64; ++sixty_four) {
        const int columns = part * (PART_COLUMNS / 64) + sixty_four;
        const float of_b = COLUMNS == 192 && columns == 1 && begins_within ? scales.of_b[1] : scales.of_b[columns / 2];
        const float low = BLOCKS ? scales.low * of_b : 1.0f, high = BLOCKS ? scales.high * of_b : 1.0f;
#pragma unroll
        for (int j = 0; j < 32; ++j) {
            float& sum = sums[32 * columns + j];
            sum = fmaf(of_block[32 * sixty_four + j], j % 4 < 2 ? low : high, sum);
        }
    }
}

// One block of K: multiply, then scale and add, while the tensor core multiplies for the other warpgroup.
__device__ __forceinline__ void add_block(
    float (&sums)[SUMS], const Shared& shared, const Stage& stage, const Scales& scales, bool begins_within, int warpgroup) {
    barrier_wait(shared.full + 8 * stage.number, stage.parity);
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
        float of_block[PART_SUMS];
        wgmma_fence();
        multiply(of_block, shared.a(stage.number) + warpgroup * (64 * DEPTH), shared.b(stage.number) + part * PART_COLUMNS * DEPTH, true);
        wgmma_commit();
        wgmma_wait<0>();
        if (part == PARTS - 1) {
            release(shared, stage.number);
        }
        add_scaled(sums, of_block, part, scales, begins_within);
    }
}

// The scales of a block are loaded when those of the last but one are no longer needed: a whole block ahead.
__device__ __forceinline__ void multiply_tile(
    float (&sums)[SUMS], const Shared& shared, Stage& stage, const ScalePointers& pointers, int depths, int warpgroup) {
#pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        sums[i] = 0.0f;
    }
    Scales even, odd;
    if (BLOCKS) {
        even = pointers.at(0);
        odd = pointers.at(min(1, depths - 1));
    }
#pragma unroll 1
    for (int i = 0; i < depths; i += 2) {
        add_block(sums, shared, stage, even, pointers.begins_within, warpgroup);
        stage.next();
        if (BLOCKS) {
            even = pointers.at(min(i + 2, depths - 1));
        }
        if (i + 1 < depths) {
            add_block(sums, shared, stage, odd, pointers.begins_within, warpgroup);
            stage.next();
            if (BLOCKS) {
                odd = pointers.at(min(i + 3, depths - 1));
            }
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1) matmul_fp8(
    const __grid_constant__ Maps<3> maps, const unsigned* __restrict__ order, const float* __restrict__ a_scales, const float* __restrict__ b_scales,
    int m, int n, int k) {
    const Shared shared;
    const int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
    const int tiles_m = (m + ROWS * CLUSTER - 1) / (ROWS * CLUSTER), tiles_n = (n + COLUMNS - 1) / COLUMNS;
    const int tiles = tiles_m * tiles_n;
    const int depths = (k + DEPTH - 1) / DEPTH;
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

    // The last warpgroup copies.
    if (warpgroup == CONSUMERS) {
        release_registers<24>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
            Stage stage;
#pragma unroll 1
            for (int number = first_tile; number < tiles; number += tile_step) {
                const Tile tile(number, tiles_m, tiles_n, rank, order);
#pragma unroll 1
                for (int i = 0; i < depths; ++i, stage.next()) {
                    barrier_wait(shared.empty + 8 * stage.number, stage.parity ^ 1);
                    fill(shared, maps, stage.number, tile, i * DEPTH, rank);
                }
            }
        }
        __syncwarp();  // the barrier of the cluster needs whole warps
    } else {
        take_registers<240>();
        const float scale = BLOCKS ? 1.0f : __ldg(a_scales) * __ldg(b_scales);
        const int t = threadIdx.x % WARPGROUP;
        Stage stage;
        for (int number = first_tile; number < tiles; number += tile_step) {
            const Tile tile(number, tiles_m, tiles_n, rank, order);
            const int row0 = tile.row + 64 * warpgroup;
            float sums[SUMS];
#if TWO_LEVEL
            const ScalePointers pointers(a_scales, b_scales, row0 + t / 32 * 16 + t % 32 / 4, tile.column, m, n, depths);
            multiply_tile(sums, shared, stage, pointers, depths, warpgroup);
#else
            multiply_tile(sums, shared, stage, depths, warpgroup);
#endif
            store(sums, shared.c + warpgroup * C_BOXES * BOX_BYTES, maps + 256, scale, row0, tile.column, warpgroup);
        }
        if (t == 0) {
            store_wait();
        }
    }
    // The shared memory of a block must last until the other one has sent everything to it.
    wait_for_cluster();
}
