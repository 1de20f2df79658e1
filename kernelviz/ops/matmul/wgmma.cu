// Matrix products on Hopper's tensor cores: C (m, n) = A (m, k) B (k, n) in bf16 or fp16, added up in fp32; A and C row-major. B is row-major,
// or stored as (n, k) as the weights of a linear layer are (B_K_CONTIGUOUS). It is the CUDA C++ ladder of `matmul`, and with a FUNCTION
// `linear_relu`, `linear_gelu` and `linear_silu`: f(A B + bias).
//
// One kernel, whose ideas are switched on one after the other by definitions:
//   COLUMNS      columns of a block's tile of C: a multiple of 16, of 64 to 256
//   CONSUMERS    warpgroups that multiply, each 64 rows of the tile: 1 or 2
//   STAGES       tiles of A and B in shared memory
//   SPECIALISED  1: a warpgroup of its own only starts the copies, and gives its registers to the others
//   PERSISTENT   1: as many blocks as are resident at once, each of which computes several tiles
//   CLUSTER      2 or 4: so many blocks with neighbouring rows each load an equal part of their common tile of B, for all (multicast)
//   C_BOXES      0: C goes to memory from registers; else by TMA, through this many boxes of shared memory for each warpgroup, while the
//                next tile begins; a tile has a multiple of as many boxes
//   HILBERT      1: the tiles are computed in the order of a table; 0: in groups of GROUP rows of tiles, which find B in the L2
//   SPLIT_K      1: the tiles of a last round that would leave blocks idle are divided into `parts` parts of K
// `maps` holds three tensor maps of boxes of 64 columns: A in boxes of ROWS rows, B in boxes of 64 rows, or of 64 / CLUSTER if its boxes cannot be divided
// among the blocks (of COLUMNS / CLUSTER rows where K is contiguous), C in boxes of 64 rows, all swizzled by 128 bytes. If COLUMNS is no multiple of 64, two
// more follow, of boxes as wide as the rest: of C, and of B. In shared memory their rows are 128 bytes apart, too. TMA fills what is outside of a matrix with
// zeros, and does not write there.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "gelu.cuh"
#include "parts_of_k.cuh"
#include "tma.cuh"
#include "warpgroups.cuh"
#include "wgmma.cuh"

constexpr int ROWS = 64 * CONSUMERS, DEPTH = 64;
constexpr int WARPGROUP = 128;
constexpr int THREADS = WARPGROUP * (CONSUMERS + SPECIALISED);
constexpr int BOXES_OF_B = (COLUMNS + 63) / 64;
constexpr bool NARROW_BOX = COLUMNS % 64 != 0;  // the last one
constexpr int A_BYTES = ROWS * DEPTH * 2, B_BYTES = DEPTH * COLUMNS * 2, BOX_BYTES = 64 * 64 * 2;
constexpr int STAGE_BYTES = A_BYTES + BOXES_OF_B * BOX_BYTES;
constexpr int C_BYTES = CONSUMERS * C_BOXES * BOX_BYTES;
#define IDENTITY 0
#define RELU 1
#define GELU 2
#define SILU 3
constexpr int BIAS_BYTES = FUNCTION == IDENTITY ? 0 : 2 * COLUMNS;  // of one warpgroup
constexpr bool DIVIDES_BOXES = BOXES_OF_B % CLUSTER == 0;
constexpr int SUMS = COLUMNS / 2;  // of one thread
static_assert(COLUMNS % 16 == 0, "columns are rounded in pairs of eight");
static_assert(!NARROW_BOX || (CLUSTER == 1 && C_BOXES), "a narrow box of B is loaded by one block, and one of C stored by TMA");

#include "boxes_by_tma.cuh"
#include "stages.cuh"
#include "tiles_in_order.cuh"

// All shared memory is dynamic: the stages, then C, then the barriers, then the bias, then a word of each
// warpgroup.
struct Shared {
    unsigned stages, c, full, empty, bias, last;

    __device__ __forceinline__ Shared() {
        extern __shared__ __align__(1024) unsigned char memory[];
        const unsigned at = (unsigned)__cvta_generic_to_shared(memory);
        stages = (at + 1023) / 1024 * 1024;  // the swizzle repeats every 1024 bytes
        c = stages + STAGES * STAGE_BYTES;
        full = c + C_BYTES;
        empty = full + 8 * STAGES;
        bias = empty + 8 * STAGES;
        last = bias + CONSUMERS * BIAS_BYTES;
    }
    __device__ __forceinline__ unsigned a(int stage) const {
        return stages + stage * STAGE_BYTES;
    }
    __device__ __forceinline__ unsigned b(int stage) const {
        return a(stage) + A_BYTES;
    }
};

// A, K contiguous: 8 rows of 128 bytes are 1024 bytes. 16 elements of K further are 32 bytes further.
__device__ __forceinline__ unsigned long long operand_a(unsigned tile, int step) {
    return wgmma_operand(tile + step * 32, 16, 1024);
}
// B, K contiguous: as A. Else N is contiguous: a box has 64 columns; the next 64 columns are a box further, the next 8 rows of K are 1024 bytes further. 16 rows of
// K further are 2048 bytes further.
__device__ __forceinline__ unsigned long long operand_b(unsigned tile, int step) {
    return B_K_CONTIGUOUS ? operand_a(tile, step) : wgmma_operand(tile + step * 2048, BOX_BYTES, 1024);
}

// --- tiles ------------------------------------------------------------------------------------------------------------------------
// What a block or cluster computes, one after the other: steps `first` to `last` of K of a tile. Tiles from number `whole` on have `parts` parts; all
// first parts come before all second ones, so that tiles with the same columns of B are at the same place of K.
struct Work {
    int number, part, first, last;

    __device__ __forceinline__ Work(int of_all, int tiles, int whole, int parts, int depths)
        : number(of_all), part(0), first(0), last(depths) {
        if (SPLIT_K && of_all >= whole) {
            const int divided = tiles - whole;
            part = (of_all - whole) / divided;
            number = whole + (of_all - whole) % divided;
            first = (long long)depths * part / parts;
            last = (long long)depths * (part + 1) / parts;
        }
    }
};

// Fill one stage; by one thread.
__device__ __forceinline__ void fill(const Shared& shared, const char* maps, int stage, const Tile& tile, int depth, int rank) {
    const unsigned full = shared.full + 8 * stage;
    barrier_expect(full, A_BYTES + B_BYTES);
    load_box(shared.a(stage), maps, depth, tile.row, full);
    if (B_K_CONTIGUOUS) {
        const int part = rank * (COLUMNS / CLUSTER);
        load_for_cluster(shared.b(stage) + part * DEPTH * 2, maps + 128, depth, tile.column + part, full);
    } else {
        // Whole boxes; or some rows of each, if their number cannot be divided: the swizzle permutes parts of eight rows.
        const int row = DIVIDES_BOXES ? 0 : rank * (DEPTH / CLUSTER);
#pragma unroll
        for (int i = 0; i < (DIVIDES_BOXES ? BOXES_OF_B / CLUSTER : BOXES_OF_B); ++i) {
            const int box = DIVIDES_BOXES ? rank * (BOXES_OF_B / CLUSTER) + i : i;
            const char* map = NARROW_BOX && box == BOXES_OF_B - 1 ? maps + 512 : maps + 128;
            load_for_cluster(shared.b(stage) + box * BOX_BYTES + row * 128, map, tile.column + 64 * box, depth + row, full);
        }
    }
}

__device__ __forceinline__ void multiply(float (&sums)[SUMS], unsigned a_tile, unsigned b_tile, bool first) {
#pragma unroll
    for (int step = 0; step < DEPTH / 16; ++step) {
        wgmma<true, B_K_CONTIGUOUS>(sums, operand_a(a_tile, step), operand_b(b_tile, step), !first || step > 0);
    }
}

// What becomes of a sum and the bias of its column before they are rounded. NaN stays NaN.
template <typename T> constexpr bool IS_HALF = false;
template <> constexpr bool IS_HALF<__half> = true;

__device__ __forceinline__ float finished(float sum) {
    if (FUNCTION == RELU) {
        float positive;
        asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(positive) : "f"(sum));
        return positive;
    }
    if (FUNCTION == GELU) {
        return gelu_polynomial<IS_HALF<ELEMENT> ? 5 : 4>(sum);  // 3 % and 12 % of what linear_gelu allows
    }
    if (FUNCTION == SILU) {
        return __fdividef(sum, 1.0f + exp2_fast(sum * -1.4426950408889634f));
    }
    return sum;
}

// The bias of a tile's columns to shared memory, before the products, so that nobody waits for it after them; two columns a thread.
__device__ __forceinline__ void load_bias(unsigned to, const ELEMENT* __restrict__ bias, int column0, int n) {
    if (FUNCTION != IDENTITY) {
        for (int i = 2 * (threadIdx.x % WARPGROUP); i < COLUMNS; i += 2 * WARPGROUP) {
            unsigned two = 0;
            if (column0 + i < n) {  // n is even
                two = __ldg(reinterpret_cast<const unsigned*>(bias + column0 + i));
            }
            asm volatile("st.shared.b32 [%0], %1;" ::"r"(to + 2 * i), "r"(two) : "memory");
        }
    }
}

// The sums of one box of so many columns, at most 64, whose bias is at this address. A thread has of each eight columns two neighbouring ones.
__device__ __forceinline__ void finish(float* sums, unsigned bias, int columns) {
    if (FUNCTION != IDENTITY) {
#pragma unroll
        for (int eight = 0; eight < 8 && 8 * eight < columns; ++eight) {
            unsigned both;
            asm volatile("ld.shared.b32 %0, [%1];" : "=r"(both) : "r"(bias + 16 * eight + threadIdx.x % 4 * 4));
            const ELEMENT* two = reinterpret_cast<const ELEMENT*>(&both);
            const float low = static_cast<float>(two[0]), high = static_cast<float>(two[1]);
            sums[4 * eight] = finished(sums[4 * eight] + low);
            sums[4 * eight + 1] = finished(sums[4 * eight + 1] + high);
            sums[4 * eight + 2] = finished(sums[4 * eight + 2] + low);
            sums[4 * eight + 3] = finished(sums[4 * eight + 3] + high);
        }
    }
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

__device__ __forceinline__ void store(
    const Shared& shared, float (&sums)[SUMS], const char* maps, ELEMENT* __restrict__ c, int row, int column, int warpgroup, int m, int n) {
#if C_BOXES
    const unsigned bias = shared.bias + warpgroup * BIAS_BYTES;
    store_by_tma(sums, shared.c + warpgroup * C_BOXES * BOX_BYTES, maps + 256, row, column, warpgroup, [=](float* of_box, int box) {
        finish(of_box, bias + 128 * box, COLUMNS - 64 * box);
    });
#else
    static_assert(FUNCTION == IDENTITY, "only what TMA stores is finished");
    store_from_registers(sums, c, row, column, m, n);
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) matmul_wgmma(
    const __grid_constant__ Maps<COLUMNS % 64 ? 5 : 3> maps, const unsigned* __restrict__ order, const ELEMENT* __restrict__ bias, ELEMENT* __restrict__ c, int m, int n,
    int k
#if SPLIT_K
    // The fp32 sums of each part of each divided tile, and for each warpgroup's part of such a tile a counter, zero before and after a launch. The
    // first `whole` tiles are not divided.
    ,
    float4* __restrict__ workspace, unsigned* __restrict__ arrived, int whole, int parts
#endif
) {
    const Shared shared;
    const int rank = CLUSTER > 1 ? rank_in_cluster() : 0;
    const int tiles_m = (m + ROWS * CLUSTER - 1) / (ROWS * CLUSTER), tiles_n = (n + COLUMNS - 1) / COLUMNS;
    const int tiles = tiles_m * tiles_n;
    const int depths = (k + DEPTH - 1) / DEPTH;
    const int first_tile = blockIdx.x / CLUSTER, tile_step = gridDim.x / CLUSTER;
    const int warpgroup = threadIdx.x / WARPGROUP;
#if SPLIT_K
    static_assert(SPECIALISED && PERSISTENT && C_BOXES);
#else
    const int whole = tiles, parts = 1;
#endif
    const int all = whole + (tiles - whole) * parts;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(shared.full + 8 * stage, 1);
            barrier_init(shared.empty + 8 * stage, CONSUMERS * CLUSTER);
        }
        barrier_init_done();
    }
    wait_for_cluster();

#if SPECIALISED
    // The last warpgroup copies.
    if (warpgroup == CONSUMERS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(CONSUMERS == 1 ? 56 : 24));
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
            Stage stage;
#pragma unroll 1
            for (int of_all = first_tile; of_all < all; of_all += tile_step) {
                const Work work(of_all, tiles, whole, parts, depths);
                const Tile tile(work.number, tiles_m, tiles_n, rank, order);
#pragma unroll 1
                for (int i = work.first; i < work.last; ++i, stage.next()) {
                    barrier_wait(shared.empty + 8 * stage.number, stage.parity ^ 1);
                    fill(shared, maps, stage.number, tile, i * DEPTH, rank);
                }
            }
        }
        __syncwarp();  // the barrier of the cluster needs whole warps
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        Stage stage;
        for (int of_all = first_tile; of_all < all; of_all += tile_step) {
            const Work work(of_all, tiles, whole, parts, depths);
            const Tile tile(work.number, tiles_m, tiles_n, rank, order);
            load_bias(shared.bias + warpgroup * BIAS_BYTES, bias, tile.column, n);
            float sums[SUMS];
            int before = -1;
            for (int i = work.first; i < work.last; ++i, stage.next()) {
                barrier_wait(shared.full + 8 * stage.number, stage.parity);
                wgmma_fence();
                multiply(sums, shared.a(stage.number) + warpgroup * (64 * DEPTH * 2), shared.b(stage.number), i == work.first);
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
#if SPLIT_K
            if (work.number >= whole && parts > 1) {
                // Whoever is last adds the sums of all parts, in their order, and stores the tile.
                const int of_divided = ((work.number - whole) * CLUSTER + rank) * CONSUMERS + warpgroup;
                float4* sums_of = workspace + (long long)of_divided * parts * (SUMS / 4 * WARPGROUP) + threadIdx.x % WARPGROUP;
                store_part(sums_of + work.part * (SUMS / 4 * WARPGROUP), sums);
                if (!is_last_warpgroup(arrived + of_divided, parts, warpgroup, shared.last + 4 * warpgroup)) {
                    continue;
                }
#pragma unroll
                for (int i = 0; i < SUMS; ++i) {
                    sums[i] = 0.0f;
                }
#pragma unroll 1
                for (int part = 0; part < parts; ++part) {
                    add_part(sums, sums_of + part * (SUMS / 4 * WARPGROUP));
                }
            }
#endif
            store(shared, sums, maps, c, tile.row + 64 * warpgroup, tile.column, warpgroup, m, n);
        }
        if (C_BOXES && threadIdx.x % WARPGROUP == 0) {
            store_wait();
        }
    }
#else
    // The first thread also copies: it fills a stage as soon as all warpgroups have multiplied what was in it.
    Stage stage;
    for (int number = first_tile; number < tiles; number += tile_step) {
        const Tile tile(number, tiles_m, tiles_n, rank, order);
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
        store(shared, sums, maps, c, tile.row + 64 * warpgroup, tile.column, warpgroup, m, n);
    }
#endif
    // The shared memory of a block must last until the other one has sent everything to it.
    wait_for_cluster();
}
