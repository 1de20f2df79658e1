// `grouped_matmul` on Hopper's tensor cores: the rows of x (rows, k) that belong to group g times w[g], of w (groups, n, k), in bf16 or fp16,
// added up in fp32. Group g has the rows from offsets[g - 1] (0 for the first) to before offsets[g], which are in device memory: blocks find
// the group of a tile by walking along them.
//
// A block has tiles of 128 rows of one group and COLUMNS columns, one after the other. Its last warpgroup only starts the copies of TMA; each
// of the other two multiplies 64 rows, while copies for the next tile already arrive. Definitions:
//   COLUMNS   columns of a tile: 128 or 256
//   STAGES    tiles of x and w in shared memory
//   CLUSTER   2: two blocks with neighbouring columns each load a half of their common tile of x, for both (multicast); else 1
//   C_BOXES   0: y goes to memory from registers; else through this many boxes of shared memory for each warpgroup: by TMA, and rows of a tile
//             that is not full by stores of 16 bytes, since TMA would write rows of the next group
//   HALVES    1: if at most half of the blocks have a tile in the last round, these tiles are cut into halves of 128 columns for twice as many
//             blocks (needs 256 columns)
//   BAND      rows of tiles that are traversed column by column, so that the rows of x and the weight are in L2
// `maps` holds three tensor maps of boxes of 64 columns, swizzled by 128 bytes: x in boxes of 128 / CLUSTER rows, w as (groups · n, k) in boxes
// of 128 rows, y in boxes of 64 rows. A tile may read rows of the next group; what is multiplied there is not stored.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tma.cuh"
#include "warpgroup_tiles.cuh"
#include "wgmma.cuh"

constexpr int CONSUMERS = 2, ROWS = 64 * CONSUMERS, DEPTH = 64;
constexpr int WARPGROUP = 128;
constexpr int THREADS = WARPGROUP * (CONSUMERS + 1);
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;  // of 168 that each of the 384 threads begins with
constexpr int W_BOX = 128;  // rows of w, so columns of y
constexpr int X_BYTES = ROWS * DEPTH * 2, W_BOX_BYTES = DEPTH * W_BOX * 2, W_BYTES = DEPTH * COLUMNS * 2, BOX_BYTES = 64 * 64 * 2;
constexpr int C_BYTES = CONSUMERS * C_BOXES * BOX_BYTES;
static_assert(!HALVES || COLUMNS == 2 * W_BOX, "a half has 128 columns");

#include "stages.cuh"

// All shared memory is dynamic: the stages, then y, then the barriers.
struct Shared {
    unsigned stages, c, full, empty;

    __device__ __forceinline__ Shared(unsigned at) {
        stages = (at + 1023) / 1024 * 1024;  // the swizzle repeats every 1024 bytes
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

// K contiguous: 8 rows of 128 bytes are 1024 bytes. 16 elements of K further are 32 bytes further.
__device__ __forceinline__ unsigned long long operand(unsigned tile, int step) {
    return wgmma_operand(tile + step * 32, 16, 1024);
}

// --- tiles ------------------------------------------------------------------------------------------------------------------------
// The tiles of a block in ascending order. All tiles of a group come before those of the next one. With clusters, a number counts pairs of
// tiles. Every thread that walks reads the same offsets, so all agree on the tiles.
__device__ __forceinline__ int row_tiles(int begin, int end) {
    return end > begin ? (end - begin + ROWS - 1) / ROWS : 0;
}

// How many tiles all groups have; by a whole warp.
__device__ __forceinline__ int count_tiles(const int* __restrict__ offsets, int groups, int rows, int tiles_n) {
    int tiles = 0;
#pragma unroll 1
    for (int group = threadIdx.x % 32; group < groups; group += 32) {
        tiles += row_tiles(group == 0 ? 0 : min(__ldg(offsets + group - 1), rows), min(__ldg(offsets + group), rows));
    }
    return warp_sum(tiles) * tiles_n;
}

// Where the rows and the weights are: the arguments of the kernel, which need no registers.
struct Problem {
    const int* __restrict__ offsets;
    int groups, rows, n;

    __device__ __forceinline__ int tiles_n() const {
        return (n + COLUMNS * CLUSTER - 1) / (COLUMNS * CLUSTER);
    }
};

struct Walk {
    int group = 0;
    int before = 0;          // tiles of the groups before this one
    int begin = 0, end = 0;  // rows of this group
    int whole;               // tiles that are not cut into halves
    int row, column;         // of the tile
    bool half = false;

    __device__ __forceinline__ Walk(const Problem& problem) {
        if (HALVES) {
            const int tiles = count_tiles(problem.offsets, problem.groups, problem.rows, problem.tiles_n());
            const int at_once = gridDim.x / CLUSTER, last_round = tiles % at_once;
            whole = 2 * last_round <= at_once ? tiles - last_round : tiles;
        }
    }

    // Go to this tile or half; whether there is one.
    __device__ __forceinline__ bool go_to(const Problem& problem, int number, int rank) {
        int first_column = rank * COLUMNS;
        if (HALVES && number >= whole) {
            half = true;
            first_column += (number - whole) % 2 * W_BOX;
            number = whole + (number - whole) / 2;
        }
        const int tiles_n = problem.tiles_n();
        for (; group < problem.groups; ++group) {
            end = min(__ldg(problem.offsets + group), problem.rows);
            const int tiles_m = row_tiles(begin, end);
            const int in_group = number - before;
            if (in_group < tiles_m * tiles_n) {
                const int in_band = BAND * tiles_n;
                const int first = in_group / in_band * BAND;
                const int rows_of_tiles = min(BAND, tiles_m - first);
                row = begin + (first + in_group % in_band % rows_of_tiles) * ROWS;
                column = in_group % in_band / rows_of_tiles * (CLUSTER * COLUMNS) + first_column;
                return true;
            }
            before += tiles_m * tiles_n;
            begin = max(begin, end);
        }
        return false;
    }
};

// Fill one stage; by one thread. With clusters, each of the two blocks sends its half of the rows of x to both.
__device__ __forceinline__ void fill(
    const Shared& shared, const char* maps, int stage, int row, int row_of_w, bool half, int depth, int rank) {
    const unsigned full = shared.full + 8 * stage;
    barrier_expect(full, X_BYTES + (half ? W_BOX_BYTES : W_BYTES));
    if (CLUSTER > 1) {
        const int part = rank * (ROWS / CLUSTER);
        load_box_for((1 << CLUSTER) - 1, shared.x(stage) + part * DEPTH * 2, maps, depth, row + part, full);
    } else {
        load_box(shared.x(stage), maps, depth, row, full);
    }
    load_box(shared.w(stage), maps + 128, depth, row_of_w, full);
    if (COLUMNS > W_BOX && !half) {
        load_box(shared.w(stage) + W_BOX_BYTES, maps + 128, depth, row_of_w + W_BOX, full);
    }
}

// A stage may be filled again when all warpgroups that its copies go to have arrived, in all blocks of the cluster.
__device__ __forceinline__ void release(const Shared& shared, int stage) {
    if (threadIdx.x % WARPGROUP < CLUSTER) {
        barrier_arrive_at(shared.empty + 8 * stage, threadIdx.x % WARPGROUP);
    }
}

__device__ __forceinline__ unsigned pair(float low, float high) {
    const ELEMENT two[2] = {static_cast<ELEMENT>(low), static_cast<ELEMENT>(high)};
    return *reinterpret_cast<const unsigned*>(two);
}

#if C_BOXES
// Through shared memory, a box of 64 columns at a time, with TMA's swizzle: the eight rows of a matrix lie in different banks.
template <int WIDTH>
__device__ __forceinline__ void store(
    const float (&sums)[WIDTH / 2], unsigned boxes, const char* map, ELEMENT* __restrict__ y, int row0, int end, int column0, int n, int warpgroup) {
    const int t = threadIdx.x % WARPGROUP;
    const int lane = t % 32;
    const bool leader = t == 0;
    const bool full = row0 + 64 <= end;
    // The matrices of a store: rows 0 to 7 and 8 to 15 of eight columns, and of the next eight columns.
    const int row = t / 32 * 16 + lane / 8 % 2 * 8 + lane % 8;
    const int next_eight = lane / 16;
#pragma unroll
    for (int box = 0; box < WIDTH / 64; ++box) {
        const unsigned to = boxes + box % C_BOXES * BOX_BYTES;
        if (leader) {
            store_wait_read<C_BOXES - 1>();  // the store that read this box has ended
        }
        warpgroup_barrier(warpgroup);
#pragma unroll
        for (int eight = 0; eight < 8; eight += 2) {
            const float* part = sums + 32 * box + 4 * eight;
            store_matrices(
                to + row * 128 + ((eight + next_eight ^ lane % 8) << 4), pair(part[0], part[1]), pair(part[2], part[3]),
                pair(part[4], part[5]), pair(part[6], part[7]));
        }
        if (full) {
            fence_for_tma();
        }
        warpgroup_barrier(warpgroup);
        if (full) {
            if (leader) {
                store_box(to, map, column0 + 64 * box, row0);
            }
        } else {
            // 16 bytes a thread: eight of them have the 128 bytes of a row.
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int of_box = t / 8 + 16 * i, vector = t % 8;
                const int column = column0 + 64 * box + 8 * vector;
                if (row0 + of_box < end && column < n) {  // n is a multiple of 8
                    *reinterpret_cast<uint4*>(y + (long long)(row0 + of_box) * n + column) =
                        load_shared_16_bytes(to + of_box * 128 + ((vector ^ of_box % 8) << 4));
                }
            }
        }
        if (leader) {
            store_commit();  // an empty group where TMA does not store, so that the boxes are counted alike
        }
    }
}
#else
// A thread has of each eight columns two neighbouring ones, in a row and in the row eight further.
template <int WIDTH>
__device__ __forceinline__ void store(
    const float (&sums)[WIDTH / 2], unsigned boxes, const char* map, ELEMENT* __restrict__ y, int row0, int end, int column0, int n, int warpgroup) {
    const int t = threadIdx.x % WARPGROUP;
    const int row = row0 + t / 32 * 16 + t % 32 / 4;
    const int column = column0 + t % 4 * 2;
#pragma unroll
    for (int eight = 0; eight < WIDTH / 8; ++eight) {
        if (column + 8 * eight < n) {  // n is even
            if (row < end) {
                *reinterpret_cast<unsigned*>(y + (long long)row * n + column + 8 * eight) = pair(sums[4 * eight], sums[4 * eight + 1]);
            }
            if (row + 8 < end) {
                *reinterpret_cast<unsigned*>(y + (long long)(row + 8) * n + column + 8 * eight) =
                    pair(sums[4 * eight + 2], sums[4 * eight + 3]);
            }
        }
    }
}
#endif

// 64 rows and WIDTH columns, by one warpgroup.
template <int WIDTH>
__device__ __forceinline__ void compute(
    const Shared& shared, Stage& stage, int depths, const char* maps, ELEMENT* __restrict__ y, int row, int end, int column, int n, int warpgroup) {
    float sums[WIDTH / 2];
#pragma unroll
    for (float& sum : sums) {
        sum = 0.0f;  // without a value, they would have registers of their own also while tiles of the other width are multiplied
    }
    int before = -1;
    for (int i = 0; i < depths; ++i, stage.next()) {
        barrier_wait(shared.full + 8 * stage.number, stage.parity);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < DEPTH / 16; ++step) {
            const unsigned x = shared.x(stage.number) + warpgroup * (64 * DEPTH * 2);
            wgmma<true, true>(sums, operand(x, step), operand(shared.w(stage.number), step), 1);
        }
        wgmma_commit();
        // One group of wgmmas may still run; the stage of the one before it is free.
        wgmma_wait<1>();
        if (before >= 0) {
            release(shared, before);
        }
        before = stage.number;
    }
    wgmma_wait<0>();
    release(shared, before);
    store<WIDTH>(sums, shared.c + warpgroup * C_BOXES * BOX_BYTES, maps + 256, y, row, end, column, n, warpgroup);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) grouped_wgmma(
    const __grid_constant__ Maps<3> maps, const int* __restrict__ offsets, ELEMENT* __restrict__ y, int groups, int rows, int n, int k) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const Shared shared((unsigned)__cvta_generic_to_shared(memory));
    const int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
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

    const Problem problem{offsets, groups, rows, n};
    Walk walk(problem);
    Stage stage;
    if (warpgroup == CONSUMERS) {
        release_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
#pragma unroll 1
            for (int number = first_tile; walk.go_to(problem, number, rank); number += tile_step) {
#pragma unroll 1
                for (int i = 0; i < depths; ++i, stage.next()) {
                    barrier_wait(shared.empty + 8 * stage.number, stage.parity ^ 1);
                    fill(shared, maps, stage.number, walk.row, walk.group * n + walk.column, walk.half, i * DEPTH, rank);
                }
            }
        }
        __syncwarp();  // the barrier of the cluster needs whole warps
    } else {
        take_registers<CONSUMER_REGISTERS>();
#pragma unroll 1
        for (int number = first_tile; walk.go_to(problem, number, rank); number += tile_step) {
            const int row = walk.row + 64 * warpgroup;
            if (row >= walk.end) {
                // The group ends before the rows of this warpgroup: its copies are counted, nothing is multiplied.
#pragma unroll 1
                for (int i = 0; i < depths; ++i, stage.next()) {
                    barrier_wait(shared.full + 8 * stage.number, stage.parity);
                    release(shared, stage.number);
                }
                continue;
            }
            if (HALVES && walk.half) {
                compute<W_BOX>(shared, stage, depths, maps, y, row, walk.end, walk.column, n, warpgroup);
            } else {
                compute<COLUMNS>(shared, stage, depths, maps, y, row, walk.end, walk.column, n, warpgroup);
            }
        }
        if (C_BOXES && threadIdx.x % WARPGROUP == 0) {
            store_wait();
        }
    }
    // The shared memory of a block must last until the other one has sent everything to it.
    wait_for_cluster();
}
