// CUDA C++ ladder of `matmul` on Hopper's tensor cores: C (m, n) = A (m, k) B (k, n), row-major, in bf16 or fp16, added up in fp32.
//
// One kernel, whose ideas are switched on one after the other by definitions:
//   COLUMNS      columns of a block's tile of C: 128 or 256
//   CONSUMERS    warpgroups that multiply, each 64 rows of the tile: 1 or 2
//   STAGES       tiles of A and B in shared memory
//   SPECIALISED  1: a warpgroup of its own only starts the copies, and gives its registers to the others
//   PERSISTENT   1: as many blocks as are resident at once, each of which computes several tiles
//   CLUSTER      2: two blocks with neighbouring rows each load a half of their common tile of B, for both (multicast)
//   TMA_STORE    1: C goes to memory by TMA, through shared memory, while the next tile begins
//   GROUP        rows of tiles that are computed together, so that they find B in the L2
// `maps` holds three tensor maps: A in boxes of 64 columns × ROWS, B in boxes of 64 columns × 64 rows, C in boxes of 64 columns × 64 rows, all
// swizzled by 128 bytes. TMA fills what is outside of a matrix with zeros, and does not write there.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "wgmma.cuh"

constexpr int ROWS = 64 * CONSUMERS, DEPTH = 64;
constexpr int WARPGROUP = 128;
constexpr int THREADS = WARPGROUP * (CONSUMERS + SPECIALISED);
constexpr int A_BYTES = ROWS * DEPTH * 2, B_BYTES = DEPTH * COLUMNS * 2, BOX_BYTES = 64 * 64 * 2;
constexpr int C_BYTES = TMA_STORE ? ROWS * COLUMNS * 2 : 0;
constexpr int BOXES_OF_B = COLUMNS / 64;
constexpr int SUMS = COLUMNS / 2;  // of one thread

// All shared memory is dynamic: the stages, then C, then the barriers.
struct Shared {
    unsigned stages, c, full, empty;

    __device__ __forceinline__ Shared() {
        extern __shared__ __align__(1024) unsigned char memory[];
        const unsigned at = (unsigned)__cvta_generic_to_shared(memory);
        stages = (at + 1023) / 1024 * 1024;  // the swizzle repeats every 1024 bytes
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

// --- barriers ---------------------------------------------------------------------------------------------------------------------
__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_wait(unsigned barrier, int parity) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::"r"(barrier),
        "r"(parity)
        : "memory");
}
__device__ __forceinline__ void barrier_expect(unsigned barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Arrive at the barrier at this place in the shared memory of a block of the cluster.
__device__ __forceinline__ void barrier_arrive_at(unsigned barrier, int block) {
    asm volatile(
        "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
        "r"(block)
        : "memory");
}
__device__ __forceinline__ int rank_in_cluster() {
    int rank = 0;
    if (CLUSTER > 1) {
        asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    }
    return rank;
}
__device__ __forceinline__ void wait_for_cluster() {
    if (CLUSTER > 1) {
        asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    } else {
        __syncthreads();
    }
}

// --- copies -----------------------------------------------------------------------------------------------------------------------
__device__ __forceinline__ void load_box(unsigned to, const char* map, int column, int row, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(map), "r"(column), "r"(row), "r"(barrier)
        : "memory");
}
// To the same place of both blocks of the cluster, and to the barriers of both.
__device__ __forceinline__ void load_box_for_both(unsigned to, const char* map, int column, int row, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
        "l"(map), "r"(column), "r"(row), "r"(barrier), "h"((unsigned short)3)
        : "memory");
}
__device__ __forceinline__ void store_box(unsigned from, const char* map, int column, int row) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column), "r"(row), "r"(from)
        : "memory");
}
__device__ __forceinline__ void acquire_map(const char* map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

// --- operands in shared memory, as wgmma describes them: address, two strides and the swizzle, in units of 16 bytes ------------------------
__device__ __forceinline__ unsigned long long descriptor(unsigned address, unsigned leading_bytes, unsigned stride_bytes) {
    return (unsigned long long)((address & 0x3FFFF) >> 4) | (unsigned long long)(leading_bytes >> 4) << 16 |
           (unsigned long long)(stride_bytes >> 4) << 32 | 1ull << 62;
}
// A, K contiguous: 8 rows of 128 bytes are 1024 bytes. 16 elements of K further are 32 bytes further.
__device__ __forceinline__ unsigned long long descriptor_of_a(unsigned tile, int step) {
    return descriptor(tile + step * 32, 16, 1024);
}
// B, N contiguous: a box has 64 columns; the next 64 columns are a box further, the next 8 rows of K are 1024 bytes further. 16 rows of
// K further are 2048 bytes further.
__device__ __forceinline__ unsigned long long descriptor_of_b(unsigned tile, int step) {
    return descriptor(tile + step * 2048, BOX_BYTES, 1024);
}

// --- tiles ------------------------------------------------------------------------------------------------------------------------
// Tiles in groups of GROUP rows of (clusters of) tiles, column by column within a group.
struct Tile {
    int row, column;

    __device__ __forceinline__ Tile(int number, int tiles_m, int tiles_n, int rank) {
        const int in_group = GROUP * tiles_n;
        const int first = number / in_group * GROUP;
        const int rows = min(GROUP, tiles_m - first);
        row = ((first + number % in_group % rows) * CLUSTER + rank) * ROWS;
        column = number % in_group / rows * COLUMNS;
    }
};

struct Stage {
    int number = 0, parity = 0;

    __device__ __forceinline__ void next() {
        if (++number == STAGES) {
            number = 0;
            parity ^= 1;
        }
    }
};

// Fill one stage; by one thread.
__device__ __forceinline__ void fill(const Shared& shared, const char* maps, int stage, const Tile& tile, int depth, int rank) {
    const unsigned full = shared.full + 8 * stage;
    barrier_expect(full, A_BYTES + B_BYTES);
    load_box(shared.a(stage), maps, depth, tile.row, full);
    if (CLUSTER > 1) {
        // A half of the boxes of B for both blocks; the other block sends the other half.
#pragma unroll
        for (int i = 0; i < BOXES_OF_B / 2; ++i) {
            const int box = rank * (BOXES_OF_B / 2) + i;
            load_box_for_both(shared.b(stage) + box * BOX_BYTES, maps + 128, tile.column + 64 * box, depth, full);
        }
    } else {
#pragma unroll
        for (int box = 0; box < BOXES_OF_B; ++box) {
            load_box(shared.b(stage) + box * BOX_BYTES, maps + 128, tile.column + 64 * box, depth, full);
        }
    }
}

__device__ __forceinline__ void multiply(float (&sums)[SUMS], unsigned a_tile, unsigned b_tile, bool first) {
#pragma unroll
    for (int step = 0; step < DEPTH / 16; ++step) {
        wgmma(sums, descriptor_of_a(a_tile, step), descriptor_of_b(b_tile, step), !first || step > 0);
    }
}

__device__ __forceinline__ unsigned pair(float low, float high) {
    const ELEMENT two[2] = {static_cast<ELEMENT>(low), static_cast<ELEMENT>(high)};
    return *reinterpret_cast<const unsigned*>(two);
}

// A thread has of each eight columns two neighbouring ones, in a row and in the row eight further.
__device__ __forceinline__ void store_from_registers(
    const float (&sums)[SUMS], ELEMENT* __restrict__ c, int row0, int column0, int m, int n) {
    const int t = threadIdx.x % WARPGROUP;
    const int row = row0 + t / 32 * 16 + t % 32 / 4;
    const int column = column0 + t % 4 * 2;
#pragma unroll
    for (int eight = 0; eight < COLUMNS / 8; ++eight) {
        if (column + 8 * eight < n) {  // n is even
            if (row < m) {
                *reinterpret_cast<unsigned*>(c + (long long)row * n + column + 8 * eight) = pair(sums[4 * eight], sums[4 * eight + 1]);
            }
            if (row + 8 < m) {
                *reinterpret_cast<unsigned*>(c + (long long)(row + 8) * n + column + 8 * eight) =
                    pair(sums[4 * eight + 2], sums[4 * eight + 3]);
            }
        }
    }
}

// Through shared memory, 64 columns at a time, each a box with TMA's swizzle: eight rows that are written at once lie in different banks.
__device__ __forceinline__ void store_by_tma(
    const float (&sums)[SUMS], unsigned boxes, const char* map, int row0, int column0, int warpgroup) {
    const int t = threadIdx.x % WARPGROUP;
    const bool leader = t == 0;
    // What this warpgroup wrote before has been read by now, or the leader waits for it; the others wait for the leader.
    if (leader) {
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory");
    const int row = t / 32 * 16 + t % 32 / 4;
#pragma unroll
    for (int eight = 0; eight < COLUMNS / 8; ++eight) {
        const unsigned box = boxes + eight / 8 * BOX_BYTES;
        const unsigned at = row * 128 + ((eight % 8 ^ row % 8) << 4) + t % 4 * 4;
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(box + at), "r"(pair(sums[4 * eight], sums[4 * eight + 1])) : "memory");
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(box + at + 1024), "r"(pair(sums[4 * eight + 2], sums[4 * eight + 3])) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory");
    if (leader) {
#pragma unroll
        for (int box = 0; box < BOXES_OF_B; ++box) {
            store_box(boxes + box * BOX_BYTES, map, column0 + 64 * box, row0);
        }
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
}

__device__ __forceinline__ void store(
    const Shared& shared, const float (&sums)[SUMS], const char* maps, ELEMENT* __restrict__ c, const Tile& tile, int warpgroup, int m,
    int n) {
    if (TMA_STORE) {
        store_by_tma(
            sums, shared.c + warpgroup * BOXES_OF_B * BOX_BYTES, maps + 256, tile.row + 64 * warpgroup, tile.column, warpgroup);
    } else {
        store_from_registers(sums, c, tile.row + 64 * warpgroup, tile.column, m, n);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) matmul_wgmma(
    const char* __restrict__ maps, ELEMENT* __restrict__ c, int m, int n, int k) {
    const Shared shared;
    const int rank = rank_in_cluster();
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
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    wait_for_cluster();

#if SPECIALISED
    // The last warpgroup copies.
    if (warpgroup == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
            acquire_map(maps);
            acquire_map(maps + 128);
            Stage stage;
#pragma unroll 1
            for (int number = first_tile; number < tiles; number += tile_step) {
                const Tile tile(number, tiles_m, tiles_n, rank);
#pragma unroll 1
                for (int i = 0; i < depths; ++i, stage.next()) {
                    barrier_wait(shared.empty + 8 * stage.number, stage.parity ^ 1);
                    fill(shared, maps, stage.number, tile, i * DEPTH, rank);
                }
            }
        }
        __syncwarp();  // the barrier of the cluster needs whole warps
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        if (TMA_STORE) {
            acquire_map(maps + 256);
        }
        Stage stage;
        for (int number = first_tile; number < tiles; number += tile_step) {
            const Tile tile(number, tiles_m, tiles_n, rank);
            float sums[SUMS];
            int before = -1;
            for (int i = 0; i < depths; ++i, stage.next()) {
                barrier_wait(shared.full + 8 * stage.number, stage.parity);
                wgmma_fence();
                multiply(sums, shared.a(stage.number) + warpgroup * (64 * DEPTH * 2), shared.b(stage.number), i == 0);
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
            store(shared, sums, maps, c, tile, warpgroup, m, n);
        }
        if (TMA_STORE && threadIdx.x % WARPGROUP == 0) {
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        }
    }
#else
    // The first thread also copies: it fills a stage as soon as all warpgroups have multiplied what was in it.
    if (threadIdx.x == 0) {
        acquire_map(maps);
        acquire_map(maps + 128);
    }
    if (TMA_STORE) {
        acquire_map(maps + 256);
    }
    Stage stage;
    for (int number = first_tile; number < tiles; number += tile_step) {
        const Tile tile(number, tiles_m, tiles_n, rank);
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES - 1 && i < depths; ++i) {
                fill(shared, maps, (stage.number + i) % STAGES, tile, i * DEPTH, rank);
            }
        }
        float sums[SUMS];
        for (int i = 0; i < depths; ++i, stage.next()) {
            if (threadIdx.x == 0 && i + STAGES - 1 < depths) {
                // The group before this one has ended, so nobody reads this stage any more.
                fill(shared, maps, (stage.number + STAGES - 1) % STAGES, tile, (i + STAGES - 1) * DEPTH, rank);
            }
            barrier_wait(shared.full + 8 * stage.number, stage.parity);
            wgmma_fence();
            multiply(sums, shared.a(stage.number) + warpgroup * (64 * DEPTH * 2), shared.b(stage.number), i == 0);
            wgmma_commit();
            wgmma_wait<0>();
            __syncthreads();
        }
        store(shared, sums, maps, c, tile, warpgroup, m, n);
    }
    if (TMA_STORE && threadIdx.x % WARPGROUP == 0) {
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
#endif
    // The shared memory of a block must last until the other one has sent everything to it.
    wait_for_cluster();
}
