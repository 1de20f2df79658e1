// Products of fp32 matrices in tf32 on Hopper's tensor cores: C (m, n) = A (m, k) B (k, n), all row-major.
//
// For tf32 the instruction needs K contiguous in operands in shared memory. In A it is; in B it is not, but the instruction's first operand may be in
// registers, in any order that the threads load. So the kernel computes Cᵀ = Bᵀ Aᵀ: the first operand is Bᵀ, which each thread loads from the tile of B
// in shared memory, and the second one is the tile of A. A warpgroup computes 64 columns of C for all ROWS rows of a tile.
//
// Warpgroups 0 to CONSUMERS - 1 multiply, the last one copies by TMA. Definitions:
//   ROWS        rows of a tile of C: 128 or 256
//   CONSUMERS   warpgroups that multiply, each for 64 columns of the tile: 2 or 3
//   STAGES      tiles of A and B in shared memory, each 32 of K deep
//   CLUSTER     2: two blocks with neighbouring columns each load a half of their common tile of A, for both (multicast)
//   C_BOXES     0: C goes to memory from registers; else by TMA, through this many pairs of boxes of shared memory for each warpgroup, while the
//               next tile begins
//   HILBERT     1: the tiles are computed in the order of a table; 0: in groups of GROUP rows of tiles, which find B in the L2
// `maps` holds three tensor maps of boxes of 32 columns, swizzled by 128 bytes: A in boxes of ROWS / CLUSTER rows, B and C in boxes of 32 rows. TMA
// fills what is outside of a matrix with zeros, and does not write there.
#include "tma.cuh"
#include "warpgroups.cuh"
#include "wgmma_tf32.cuh"

constexpr int COLUMNS = 64 * CONSUMERS, DEPTH = 32, STEP = 8, STEPS = DEPTH / STEP;
constexpr int WARPGROUP = 128;
constexpr int THREADS = WARPGROUP * (CONSUMERS + 1);
constexpr int A_BYTES = ROWS * DEPTH * 4, B_BYTES = DEPTH * COLUMNS * 4, BOX_BYTES = DEPTH * 128;
constexpr int C_BYTES = CONSUMERS * C_BOXES * 2 * BOX_BYTES;
constexpr int BOXES_OF_B = COLUMNS / 32;
constexpr int SUMS = ROWS / 2;  // of one thread
constexpr int REGISTERS = CONSUMERS == 2 ? 240 : 160, REGISTERS_TO_COPY = CONSUMERS == 2 ? 24 : 32;

#include "stages.cuh"

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

// --- tiles ------------------------------------------------------------------------------------------------------------------------
// The first row and column of a block's tile. With clusters, `number` counts pairs of tiles, side by side.
struct Tile {
    int row, column;

    __device__ __forceinline__ Tile(int number, int tiles_m, int tiles_n, int rank, const unsigned* __restrict__ order) {
        int of_m, of_n;
        if (HILBERT) {
            const unsigned place = __ldg(order + number);
            of_m = place & 0xFFFF;
            of_n = place >> 16;
        } else {
            const int in_group = GROUP * tiles_n;
            const int first = number / in_group * GROUP;
            const int rows = min(GROUP, tiles_m - first);
            of_m = first + number % in_group % rows;
            of_n = number % in_group / rows;
        }
        row = of_m * ROWS;
        column = (of_n * CLUSTER + rank) * COLUMNS;
    }
};

// Fill one stage; by one thread.
__device__ __forceinline__ void fill(const Shared& shared, const char* maps, int stage, const Tile& tile, int depth, int rank) {
    const unsigned full = shared.full + 8 * stage;
    barrier_expect(full, A_BYTES + B_BYTES);
    const int part = rank * (ROWS / CLUSTER);
    if (CLUSTER > 1) {
        load_box_for((1 << CLUSTER) - 1, shared.a(stage) + part * 128, maps, depth, tile.row + part, full);
    } else {
        load_box(shared.a(stage), maps, depth, tile.row, full);
    }
#pragma unroll
    for (int box = 0; box < BOXES_OF_B; ++box) {
        load_box(shared.b(stage) + box * BOX_BYTES, maps + 128, tile.column + 32 * box, depth, full);
    }
}

// --- operands ---------------------------------------------------------------------------------------------------------------------
// The columns of B that a thread multiplies. The instruction wants of each thread two rows of its first operand, r = lane / 4 and r + 8 of the warp's 16,
// and two depths, q = lane % 4 and q + 4. Which column of B is which row is free, and so chosen that a thread has two neighbouring columns (one load, and
// one store to C), and that the loads of 16 threads touch each bank once: TMA exchanges the 16-byte parts of row d of a box by d % 8, so in rows
// q = 0 to 3 the parts p and p + 4 fall on the eight different parts of 128 bytes.
struct Columns {
    int part, within;  // the part of 16 bytes in a box's row, and 0 or 2 columns in it

    __device__ __forceinline__ Columns(int t) {
        const int r = t % 32 / 4;
        part = t / 32 % 2 * 2 + r / 4 + r / 2 % 2 * 4;
        within = r % 2 * 2;
    }
    // The first of the two columns in the warpgroup's 64.
    __device__ __forceinline__ int first(int t) const {
        return t / 64 * 32 + 4 * part + within;
    }
    // Where they lie in a row of the box of their 32 columns, counted from the first box of the warpgroup.
    __device__ __forceinline__ unsigned address(int t, int row) const {
        return t / 64 * BOX_BYTES + row * 128 + ((part ^ row % 8) << 4) + within * 4;
    }
};

// Bᵀ of one stage, as the instruction wants it: for each step of 8 of K two columns at two depths.
struct Fragments {
    unsigned of_step[STEPS][4];

    // `near` and `far`: the addresses of depths lane % 4 and lane % 4 + 4. Eight rows further are 1024 bytes further.
    __device__ __forceinline__ void load(unsigned near, unsigned far) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            load_two(of_step[step][0], of_step[step][1], near + step * 1024);
            load_two(of_step[step][2], of_step[step][3], far + step * 1024);
        }
    }
};

// A: 8 rows of 128 bytes are 1024 bytes; 8 elements of K further are 32 bytes further.
__device__ __forceinline__ void multiply(float (&sums)[SUMS], const Fragments& fragments, unsigned a_tile, bool first) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
        wgmma_tf32(sums, fragments.of_step[step], wgmma_operand(a_tile + step * STEP * 4, 16, 1024), !first || step > 0);
    }
}

// Tell all blocks of the cluster that this warpgroup has multiplied what is in a stage.
__device__ __forceinline__ void release(const Shared& shared, int stage) {
    if (threadIdx.x % WARPGROUP < CLUSTER) {
        barrier_arrive_at(shared.empty + 8 * stage, threadIdx.x % WARPGROUP);
    }
}

// A thread has of each eight rows of C two neighbouring ones, in its two columns. Four threads store 32 bytes of a row together.
__device__ __forceinline__ void store(const float (&sums)[SUMS], float* __restrict__ c, int row0, int column, int m, int n) {
    if (column < n) {  // n is a multiple of 4
        const int first = row0 + threadIdx.x % 4 * 2;
        float* to = c + (long long)first * n + column;
#pragma unroll
        for (int eight = 0; eight < ROWS / 8; ++eight) {
            if (first + 8 * eight < m) {
                *reinterpret_cast<float2*>(to + (long long)(8 * eight) * n) = make_float2(sums[4 * eight], sums[4 * eight + 2]);
            }
            if (first + 8 * eight + 1 < m) {
                *reinterpret_cast<float2*>(to + (long long)(8 * eight + 1) * n) = make_float2(sums[4 * eight + 1], sums[4 * eight + 3]);
            }
        }
    }
}

#if C_BOXES
// Through shared memory, 32 rows at a time. The threads of odd pairs of rows store the second one first, so that 16 threads touch each bank once.
__device__ __forceinline__ void store_by_tma(
    const float (&sums)[SUMS], unsigned boxes, const char* map, const Columns& columns, int row0, int column0, int warpgroup) {
    const int t = threadIdx.x % WARPGROUP;
    const bool leader = t == 0, second_first = t & 2;
#pragma unroll
    for (int part = 0; part < ROWS / 32; ++part) {
        const unsigned to = boxes + part % C_BOXES * 2 * BOX_BYTES;
        if (leader) {
            store_wait_read<C_BOXES - 1>();  // the stores that read these boxes have ended
        }
        warpgroup_barrier(warpgroup);
#pragma unroll
        for (int eight = 0; eight < 4; ++eight) {
            const float* four = sums + 4 * (4 * part + eight);
            const int row = 8 * eight + t % 4 * 2;
            store_two(to + columns.address(t, row + second_first), second_first ? four[1] : four[0], second_first ? four[3] : four[2]);
            store_two(to + columns.address(t, row + !second_first), second_first ? four[0] : four[1], second_first ? four[2] : four[3]);
        }
        fence_for_tma();
        warpgroup_barrier(warpgroup);
        if (leader) {
            store_box(to, map, column0, row0 + 32 * part);
            store_box(to + BOX_BYTES, map, column0 + 32, row0 + 32 * part);
            store_commit();
        }
    }
}
#endif

// The operands of a tile for one warpgroup. While the products of one stage run, the fragments of the next one are loaded.
struct Multiplier {
    const Shared& shared;
    Stage& stage;
    unsigned near, far;

    __device__ __forceinline__ void load(Fragments& fragments) const {
        barrier_wait(shared.full + 8 * stage.number, stage.parity);
        fragments.load(shared.b(stage.number) + near, shared.b(stage.number) + far);
    }
    // Start the products of `now` in this stage, wait for those of the stage before it, and load the next stage unless this is the last.
    __device__ __forceinline__ void step(float (&sums)[SUMS], const Fragments& now, Fragments& next, int& before, bool first, bool last) const {
        wgmma_fence();
        multiply(sums, now, shared.a(stage.number), first);
        wgmma_commit();
        wgmma_wait<1>();  // the stage before this one, whose fragments `next` held
        if (before >= 0) {
            release(shared, before);
        }
        before = stage.number;
        stage.next();
        if (!last) {
            load(next);
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1) matmul_tf32(
    const __grid_constant__ Maps<3> maps, const unsigned* __restrict__ order, float* __restrict__ c, int m, int n, int k) {
    const Shared shared;
    const int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
    const int tiles_m = (m + ROWS - 1) / ROWS, tiles_n = (n + COLUMNS * CLUSTER - 1) / (COLUMNS * CLUSTER);
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
        release_registers<REGISTERS_TO_COPY>();
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
        take_registers<REGISTERS>();
        const int t = threadIdx.x % WARPGROUP;
        const Columns columns(t);
        const unsigned boxes = 2 * warpgroup * BOX_BYTES;
        Stage stage;
        const Multiplier multiplier{shared, stage, boxes + columns.address(t, t % 4), boxes + columns.address(t, t % 4 + 4)};
        for (int number = first_tile; number < tiles; number += tile_step) {
            const Tile tile(number, tiles_m, tiles_n, rank, order);
            float sums[SUMS];
            Fragments even, odd;
            int before = -1;
            multiplier.load(even);
#pragma unroll 1
            for (int i = 0; i + 1 < depths; i += 2) {
                multiplier.step(sums, even, odd, before, i == 0, false);
                multiplier.step(sums, odd, even, before, false, i + 2 >= depths);
            }
            if (depths % 2) {
                multiplier.step(sums, even, odd, before, depths == 1, true);
            }
            wgmma_wait<0>();
            release(shared, before);
            const int column0 = tile.column + 64 * warpgroup;
#if C_BOXES
            store_by_tma(sums, shared.c + warpgroup * C_BOXES * 2 * BOX_BYTES, maps + 256, columns, tile.row, column0, warpgroup);
#else
            store(sums, c, tile.row, column0 + columns.first(t), m, n);
#endif
        }
        if (C_BOXES && t == 0) {
            store_wait();
        }
    }
    // The shared memory of a block must last until the other one has sent everything to it.
    wait_for_cluster();
}
