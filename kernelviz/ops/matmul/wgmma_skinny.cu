// Matrix products with few rows or few tiles on Hopper's tensor cores: C (m, n) = A (m, k) B (k, n) in bf16 or fp16, added up in fp32; all
// row-major.
//
// The operands are exchanged: columns of B are the 64 rows of a wgmma, and the rows of A are its 8 to 128 columns. So no row of the tensor
// cores is wasted on a few rows of A, and B streams through shared memory by TMA: once, if A has no more than ROWS rows.
//   COLUMNS  columns of a block's tile of C: 64 for each of its warpgroups
//   ROWS     rows of a tile, the last of them filled up with zeros: 8, 16, 32, 64 or 128
//   STAGES   tiles of B and A in shared memory; a warp of its own fills them
//   PARTS    blocks of a cluster, each of which takes a part of K. They add up their sums through each other's shared memory, always in
//            the same order.
//   OVERLAP  1: the next products begin while the last ones run, and a stage is released one step later; 0: not so, which leaves more stages to the
//            copies, where their time is what counts
// `maps` holds three tensor maps of boxes of 64 columns: A in boxes of ROWS rows, B in boxes of 64 rows, C in boxes of ROWS rows, all swizzled by 128 bytes.
// TMA fills what is outside of a matrix with zeros, and does not write there.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "tma.cuh"
#include "warpgroups.cuh"
#include "wgmma.cuh"

constexpr int DEPTH = 64, WARPGROUP = 128;
constexpr int CONSUMERS = COLUMNS / 64;
constexpr int THREADS = CONSUMERS * WARPGROUP + 32;
constexpr int BOX_BYTES = 64 * DEPTH * 2, A_BYTES = ROWS * DEPTH * 2, STAGE_BYTES = CONSUMERS * BOX_BYTES + A_BYTES;
constexpr int PITCH = COLUMNS + 4;  // of the sums of a row of C, so that threads of a warp write to different banks

// Without other parts, TMA stores C, if there are two matrices of eight rows.
constexpr bool BY_TMA = PARTS == 1 && ROWS >= 16;

__device__ __forceinline__ unsigned pair(float low, float high) {
    const ELEMENT two[2] = {static_cast<ELEMENT>(low), static_cast<ELEMENT>(high)};
    return *reinterpret_cast<const unsigned*>(two);
}
// The sums of 64 columns of ROWS rows of C, of which a thread has two neighbouring rows of a column, as a box of C. By all threads of a warpgroup.
__device__ __forceinline__ void store_by_tma(
    const float (&sums)[ROWS / 2], unsigned box, const char* map, int row0, int column0, int warpgroup) {
    const int t = threadIdx.x % WARPGROUP, lane = t % 32;
    // The matrices of a store, transposed: eight rows, of these the first and the last eight of a warp's 16 columns, and the next eight rows.
    const int row = lane / 16 * 8 + lane % 8, eight_columns = t / 32 * 2 + lane / 8 % 2;
#pragma unroll
    for (int eight = 0; eight < ROWS / 8; eight += 2) {
        const float* part = sums + 4 * eight;
        store_transposed(
            box + (8 * eight + row) * 128 + ((eight_columns ^ lane % 8) << 4), pair(part[0], part[1]), pair(part[2], part[3]),
            pair(part[4], part[5]), pair(part[6], part[7]));
    }
    fence_for_tma();
    warpgroup_barrier(warpgroup);
    if (t == 0) {
        store_box(box, map, column0, row0);
        store_commit();
        store_wait();
    }
}

__device__ __forceinline__ float4 load_from(unsigned address, int block) {
    float4 v;
    asm volatile(
        "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %4, %5;\nld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [remote];\n}"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "r"(address), "r"(block)
        : "memory");
    return v;
}

__device__ __forceinline__ void wait_for_cluster() {
    if (PARTS > 1) {
        cluster_barrier();
    } else {
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) matmul_wgmma_skinny(
    const __grid_constant__ Maps<3> maps, ELEMENT* __restrict__ c, int m, int n, int k) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned at = (unsigned)__cvta_generic_to_shared(memory);
    const unsigned stages = (at + 1023) / 1024 * 1024;  // the swizzle repeats every 1024 bytes
    const unsigned full = stages + STAGES * STAGE_BYTES, empty = full + 8 * STAGES;
    const int rank = PARTS > 1 ? rank_in_cluster() : 0;
    // The tiles of the same columns are neighbours, and find B in the L2.
    const int row_tiles = (m + ROWS - 1) / ROWS, tile = blockIdx.x / PARTS;
    const int row0 = tile % row_tiles * ROWS, column0 = tile / row_tiles * COLUMNS;
    const int depths = (k + DEPTH - 1) / DEPTH;
    const int first = (int)((long long)depths * rank / PARTS), end = (int)((long long)depths * (rank + 1) / PARTS);
    const int warpgroup = threadIdx.x / WARPGROUP, t = threadIdx.x % WARPGROUP;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(full + 8 * stage, 1);
            barrier_init(empty + 8 * stage, CONSUMERS);
        }
        barrier_init_done();
    }
    __syncthreads();

    if (warpgroup == CONSUMERS) {
        if (t == 0) {
            int stage = 0, parity = 1;
#pragma unroll 1
            for (int i = first; i < end; ++i) {
                const unsigned to = stages + stage * STAGE_BYTES, loaded = full + 8 * stage;
                barrier_wait(empty + 8 * stage, parity);
                barrier_expect(loaded, STAGE_BYTES);
#pragma unroll
                for (int box = 0; box < CONSUMERS; ++box) {
                    load_box(to + box * BOX_BYTES, maps + 128, column0 + 64 * box, i * DEPTH, loaded);
                }
                load_box(to + CONSUMERS * BOX_BYTES, maps, i * DEPTH, row0, loaded);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        __syncwarp();  // the barriers below need whole warps
    } else {
        float sums[ROWS / 2];
#pragma unroll
        for (int i = 0; i < ROWS / 2; ++i) {
            sums[i] = 0.0f;
        }
        order_registers(sums);
        int stage = 0, parity = 0, before = -1;
#pragma unroll 1
        for (int i = first; i < end; ++i) {
            const unsigned b = stages + stage * STAGE_BYTES + warpgroup * BOX_BYTES, a = stages + stage * STAGE_BYTES + CONSUMERS * BOX_BYTES;
            barrier_wait(full + 8 * stage, parity);
            wgmma_fence();
#pragma unroll
            for (int step = 0; step < DEPTH / 16; ++step) {
                // B: 8 rows of K are 1024 bytes. A: 16 elements of K further are 32 bytes further, 8 rows are 1024 bytes.
                wgmma<false, true>(sums, wgmma_operand(b + step * 2048, 16, 1024), wgmma_operand(a + step * 32, 16, 1024), 1);
            }
            wgmma_commit();
            wgmma_wait<OVERLAP>();
            const int released = OVERLAP ? before : stage;
            if (released >= 0 && t == 0) {
                barrier_arrive(empty + 8 * released);
            }
            before = stage;
            if (++stage == STAGES) {
                stage = 0;
                parity ^= 1;
            }
        }
        wgmma_wait<0>();
        order_registers(sums);
        // All copies to this block have arrived, and both warpgroups must have multiplied them before the sums take their place.
        asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS * WARPGROUP) : "memory");
        if (BY_TMA) {
            store_by_tma(sums, stages + warpgroup * (ROWS * 128), maps + 256, row0, column0 + 64 * warpgroup, warpgroup);
            return;
        }
        const int column = warpgroup * 64 + t / 32 * 16 + t % 32 / 4;
#pragma unroll
        for (int eight = 0; eight < ROWS / 8; ++eight) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = 8 * eight + t % 4 * 2 + i % 2;
                const unsigned to = stages + 4 * (row * PITCH + column + i / 2 * 8);
                asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(sums[4 * eight + i]) : "memory");
            }
        }
    }
    if (BY_TMA) {
        return;
    }
    wait_for_cluster();
    constexpr int FOURS = COLUMNS / 4;
    const int fours = min(m - row0, ROWS) * FOURS;
    for (int i = rank * THREADS + threadIdx.x; i < fours; i += PARTS * THREADS) {
        const int row = i / FOURS, column = i % FOURS * 4;
        const unsigned from = stages + 4 * (row * PITCH + column);
        float4 sum = load_from(from, 0);
#pragma unroll
        for (int part = 1; part < PARTS; ++part) {
            const float4 more = load_from(from, part);
            sum.x += more.x;
            sum.y += more.y;
            sum.z += more.z;
            sum.w += more.w;
        }
        if (column0 + column < n) {  // n is a multiple of 8
            const ELEMENT four[4] = {static_cast<ELEMENT>(sum.x), static_cast<ELEMENT>(sum.y), static_cast<ELEMENT>(sum.z), static_cast<ELEMENT>(sum.w)};
            *reinterpret_cast<uint2*>(c + (long long)(row0 + row) * n + column0 + column) = *reinterpret_cast<const uint2*>(four);
        }
    }
    wait_for_cluster();  // the sums of a block must last until the others have read them
}
