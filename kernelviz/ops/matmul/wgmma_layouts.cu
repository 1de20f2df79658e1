// Matrix products on Hopper's tensor cores with operands of either layout: C (m, n) = A (m, k) B (k, n) in bf16 or fp16, added up in fp32.
// C is row-major. A is row-major (A_K_CONTIGUOUS 1) or stored as (k, m), so that M is contiguous (0). B is stored as (n, k), so that K is contiguous
// (B_K_CONTIGUOUS 1), or row-major (0). Nothing is transposed in memory: wgmma reads an operand of 16-bit elements from shared memory in either order.
//
// It is the kernel of wgmma.cu with all its ideas but split-K: persistent blocks, one warpgroup that copies, CONSUMERS warpgroups that multiply, clusters
// with multicast of B, and TMA stores. Definitions:
//   COLUMNS      columns of a block's tile of C: a multiple of 16, of 64 to 256
//   CONSUMERS    warpgroups that multiply, each 64 rows of the tile: 1 or 2
//   STAGES       tiles of A and B in shared memory
//   CLUSTER      blocks with neighbouring rows, each of which loads its part of their common tile of B for all of them
//   C_BOXES      boxes of shared memory of each warpgroup, through which C is stored while the next tile begins
//   HILBERT      1: the tiles are computed in the order of a table; 0: in groups of GROUP rows of tiles, which find B in the L2
// `maps` holds three tensor maps of boxes of 64 columns, swizzled by 128 bytes: A in boxes of ROWS rows, or of 64 rows of K; B in boxes of
// COLUMNS / CLUSTER rows, or of 64 rows of K; C in boxes of 64 rows. If COLUMNS is no multiple of 64, two more follow, of boxes as
// wide as the rest: of C, and of B. In shared memory their rows are 128 bytes apart, too. TMA fills what is outside of a matrix with zeros, and does not write there.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tma.cuh"
#include "warpgroups.cuh"
#include "wgmma.cuh"

constexpr int ROWS = 64 * CONSUMERS, DEPTH = 64;
constexpr int WARPGROUP = 128;
constexpr int THREADS = WARPGROUP * (CONSUMERS + 1);
constexpr int BOXES_OF_B = (COLUMNS + 63) / 64;
constexpr bool NARROW_BOX = COLUMNS % 64 != 0;  // the last one
constexpr int A_BYTES = ROWS * DEPTH * 2, B_BYTES = DEPTH * COLUMNS * 2, BOX_BYTES = 64 * 64 * 2;
constexpr int STAGE_BYTES = A_BYTES + BOXES_OF_B * BOX_BYTES;
constexpr int C_BYTES = CONSUMERS * C_BOXES * BOX_BYTES;
constexpr int SUMS = COLUMNS / 2;  // of one thread
static_assert(COLUMNS % 16 == 0, "columns are rounded in pairs of eight");
static_assert(!NARROW_BOX || CLUSTER == 1, "a narrow box of B is loaded by one block");
static_assert(B_K_CONTIGUOUS || BOXES_OF_B % CLUSTER == 0, "else some boxes of B would not be loaded");

#include "boxes_by_tma.cuh"
#include "stages.cuh"
#include "tiles_in_order.cuh"

// All shared memory is dynamic: the stages, then C, then the barriers.
struct Shared {
    unsigned stages, c, full, empty;

    __device__ __forceinline__ explicit Shared(unsigned address) {
        stages = (address + 1023) / 1024 * 1024;  // the swizzle repeats every 1024 bytes
        c = stages + STAGES * STAGE_BYTES;
        full = c + C_BYTES;
        empty = full + 8 * STAGES;
    }
    __device__ __forceinline__ unsigned a(int stage) const {
        return stages + stage * STAGE_BYTES;
    }
    __device__ __forceinline__ unsigned b(int stage) const {
        return a(stage) + A_BYTES;
    }
};

// K contiguous: 8 rows of 128 bytes are 1024 bytes. 16 elements of K further are 32 bytes further.
__device__ __forceinline__ unsigned long long k_contiguous(unsigned tile, int step) {
    return wgmma_operand(tile + step * 32, 16, 1024);
}
// M or N contiguous: a box has 64 of them; the next 64 are a box further, the next 8 rows of K 1024 bytes. 16 rows of K further are 2048 bytes further.
__device__ __forceinline__ unsigned long long k_strided(unsigned tile, int step) {
    return wgmma_operand(tile + step * 2048, BOX_BYTES, 1024);
}

// The 64 rows of A of a warpgroup are 64 rows of its box, or a box of their own: 8192 bytes in both layouts.
__device__ __forceinline__ void multiply(float (&sums)[SUMS], unsigned a_tile, unsigned b_tile, bool first) {
#pragma unroll
    for (int step = 0; step < DEPTH / 16; ++step) {
        const unsigned long long a = A_K_CONTIGUOUS ? k_contiguous(a_tile, step) : k_strided(a_tile, step);
        const unsigned long long b = B_K_CONTIGUOUS ? k_contiguous(b_tile, step) : k_strided(b_tile, step);
        wgmma<A_K_CONTIGUOUS, B_K_CONTIGUOUS>(sums, a, b, !first || step > 0);
    }
}

// Fill one stage; by one thread.
__device__ __forceinline__ void fill(const Shared& shared, const char* maps, int stage, const Tile& tile, int depth, int rank) {
    const unsigned full = shared.full + 8 * stage;
    barrier_expect(full, A_BYTES + B_BYTES);
    if (A_K_CONTIGUOUS) {
        load_box(shared.a(stage), maps, depth, tile.row, full);
    } else {
#pragma unroll
        for (int box = 0; box < CONSUMERS; ++box) {
            load_box(shared.a(stage) + box * BOX_BYTES, maps, tile.row + 64 * box, depth, full);
        }
    }
    if (B_K_CONTIGUOUS) {
        const int part = rank * (COLUMNS / CLUSTER);
        load_for_cluster(shared.b(stage) + part * DEPTH * 2, maps + 128, depth, tile.column + part, full);
    } else {
#pragma unroll
        for (int i = 0; i < BOXES_OF_B / CLUSTER; ++i) {
            const int box = rank * (BOXES_OF_B / CLUSTER) + i;
            const char* map = NARROW_BOX && box == BOXES_OF_B - 1 ? maps + 512 : maps + 128;
            load_for_cluster(shared.b(stage) + box * BOX_BYTES, map, tile.column + 64 * box, depth, full);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) matmul_wgmma_layouts(
    const __grid_constant__ Maps<COLUMNS % 64 ? 5 : 3> maps, const unsigned* __restrict__ order, int m, int n, int k) {
    const Shared shared(dynamic_shared_memory());
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
        release_registers<CONSUMERS == 1 ? 56 : 24>();
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
        Stage stage;
        for (int number = first_tile; number < tiles; number += tile_step) {
            const Tile tile(number, tiles_m, tiles_n, rank, order);
            float sums[SUMS];
            int before = -1;
            for (int i = 0; i < depths; ++i, stage.next()) {
                barrier_wait(shared.full + 8 * stage.number, stage.parity);
                wgmma_fence();
                multiply(sums, shared.a(stage.number) + warpgroup * BOX_BYTES, shared.b(stage.number), i == 0);
                wgmma_commit();
                // One group may still run; the stage of the group before it is free.
                wgmma_wait<1>();
                if (before >= 0 && threadIdx.x % WARPGROUP < CLUSTER) {
                    barrier_arrive_at(shared.empty + 8 * before, threadIdx.x % WARPGROUP);
                }
                before = stage.number;
            }
            wgmma_wait<0>();
            if (threadIdx.x % WARPGROUP < CLUSTER) {
                barrier_arrive_at(shared.empty + 8 * before, threadIdx.x % WARPGROUP);
            }
            store_by_tma(sums, shared.c + warpgroup * C_BOXES * BOX_BYTES, maps + 256, tile.row + 64 * warpgroup, tile.column, warpgroup);
        }
        if (threadIdx.x % WARPGROUP == 0) {
            store_wait();
        }
    }
    // The shared memory of a block must last until the other one has sent everything to it.
    wait_for_cluster();
}
