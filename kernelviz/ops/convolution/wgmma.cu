// `conv2d` and `conv_bias_relu` on Hopper's tensor cores, in bf16 or fp16, added up in fp32: x is (n, h, w, c), the filters are (k, r, r, c), y is
// (n, p, q, k), whose rows of k elements are called pixels here.
//
// The convolution is a product of a matrix of filters and one of windows, which is never in memory: TMA copies for each tap of the filter what it
// sees of neighbouring pixels (im2col), zeros outside of the images. Filters are the rows of wgmma, since a result may have few of them: its
// instructions then still have 128 or more columns, which are pixels.
//
// A block has tiles of FILTERS × PIXELS, one after the other. Its last warpgroup only starts the copies of TMA; the other two multiply, while copies
// for the next tile already arrive, and TMA stores y through boxes of 64 pixels and 64 filters. Definitions:
//   FILTERS   of a tile: 128, of which each warpgroup has 64; or 64, and each warpgroup has half of the pixels
//   PIXELS    of a tile: 128, 192 or 256 (64 filters: 256)
//   STAGES    windows and filters in shared memory
//   RESIDENT  0: filters are copied for each tile; else the steps of a tile, whose filters stay in shared memory (k is at most FILTERS)
//   PARTS     1: a tile is computed by one block; else so many blocks each have a part of its steps, and the last one adds up their sums
//   BOXES     of shared memory for each warpgroup, from which TMA stores y
//   BIAS_RELU 1: the bias of a filter is added and negative results become 0
// `maps` holds three tensor maps, swizzled by 128 bytes: the windows, 64 channels of PIXELS pixels; the filters as (k, r·r, c), 64 channels of one
// tap of FILTERS filters; y as (n·p·q, k) in boxes of 64 rows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define CLUSTER 1
#include "im2col.cuh"
#include "parts_of_k.cuh"
#include "tma.cuh"
#include "warpgroup_tiles.cuh"
#include "wgmma.cuh"

constexpr int CONSUMERS = 2, DEPTH = 64, WARPGROUP = 128;
constexpr int THREADS = WARPGROUP * (CONSUMERS + 1);
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;  // of 168 that each of the 384 threads begins with
constexpr int ROW_BYTES = DEPTH * 2, BOX_BYTES = 64 * ROW_BYTES;
constexpr int X_BYTES = PIXELS * ROW_BYTES, W_BYTES = FILTERS * ROW_BYTES;
constexpr int STAGE_BYTES = X_BYTES + (RESIDENT ? 0 : W_BYTES);
constexpr int WIDTH = FILTERS == 128 ? PIXELS : PIXELS / 2;  // pixels of a warpgroup
constexpr int SUMS = WIDTH / 2;                              // of one thread

#include "stages.cuh"

// All shared memory is dynamic: filters that stay, the stages, then boxes of y, then the barriers.
struct Shared {
    unsigned resident, stages, boxes, full, empty, ready, last;

    __device__ __forceinline__ Shared(unsigned at) {
        resident = (at + 1023) / 1024 * 1024;  // the swizzle repeats every 1024 bytes
        stages = resident + RESIDENT * W_BYTES;
        boxes = stages + STAGES * STAGE_BYTES;
        full = boxes + CONSUMERS * BOXES * BOX_BYTES;
        empty = full + 8 * STAGES;
        ready = empty + 8 * STAGES;
        last = ready + 8;
    }
    __device__ __forceinline__ unsigned x(int stage) const {
        return stages + stage * STAGE_BYTES;
    }
    __device__ __forceinline__ unsigned w(int stage, int step) const {
        return RESIDENT ? resident + step * W_BYTES : x(stage) + X_BYTES;
    }
};

// K contiguous: 8 rows of 128 bytes are 1024 bytes. 16 elements of K further are 32 bytes further.
__device__ __forceinline__ unsigned long long operand(unsigned tile, int step) {
    return wgmma_operand(tile + step * 32, 16, 1024);
}

__device__ __forceinline__ unsigned pair(float low, float high) {
    const ELEMENT two[2] = {static_cast<ELEMENT>(low), static_cast<ELEMENT>(high)};
    return *reinterpret_cast<const unsigned*>(two);
}

__device__ __forceinline__ float finished(float sum, float bias) {
    if (BIAS_RELU) {
        float positive;
        asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(positive) : "f"(sum + bias));
        return positive;
    }
    return sum;
}

// The bias of the two filters of a thread, 8 apart.
struct Bias {
    float low = 0.0f, high = 0.0f;

    __device__ __forceinline__ Bias(const ELEMENT* __restrict__ bias, int filter, int k) {
        if (BIAS_RELU) {
            low = filter < k ? static_cast<float>(bias[filter]) : 0.0f;
            high = filter + 8 < k ? static_cast<float>(bias[filter + 8]) : 0.0f;
        }
    }
};

// The sums of 64 filters and WIDTH pixels, by one warpgroup: each box is written as pixels of 64 filters. A thread has of each eight pixels two
// neighbouring ones, of a filter and of the filter eight further.
__device__ __forceinline__ void store(
    const float (&sums)[SUMS], Bias bias, unsigned boxes, int& next, const char* map, int filter0, int pixel0, int warpgroup) {
    const int t = threadIdx.x % WARPGROUP;
    const int lane = t % 32, warp = t / 32;
    const bool leader = t == 0;
    // The matrices of a store: filters 0 to 7 and 8 to 15 of a warp for eight pixels, and for the next eight pixels.
    const int part = 2 * warp + lane / 8 % 2, next_eight = lane / 16;
#pragma unroll
    for (int box = 0; box < WIDTH / 64; ++box) {
        const unsigned to = boxes + next * BOX_BYTES;
        next = next + 1 == BOXES ? 0 : next + 1;
        if (leader) {
            store_wait_read<BOXES - 1>();  // the store that read this box has ended
        }
        warpgroup_barrier(warpgroup);
#pragma unroll
        for (int eight = 0; eight < 8; eight += 2) {
            const float* of = sums + 32 * box + 4 * eight;
            store_transposed(
                to + (8 * (eight + next_eight) + lane % 8) * ROW_BYTES + ((part ^ lane % 8) << 4),
                pair(finished(of[0], bias.low), finished(of[1], bias.low)), pair(finished(of[2], bias.high), finished(of[3], bias.high)),
                pair(finished(of[4], bias.low), finished(of[5], bias.low)), pair(finished(of[6], bias.high), finished(of[7], bias.high)));
        }
        fence_for_tma();
        warpgroup_barrier(warpgroup);
        if (leader) {
            store_box(to, map, filter0, pixel0 + 64 * box);
            store_commit();
        }
    }
}

// What a block computes, one after the other: steps `first` to `end` of a tile, counted tap by tap and, of each, 64 channels by 64 channels.
struct Work {
    int filter, pixel, part, tile, first, end;

    __device__ __forceinline__ Work(int number, int tiles, int tiles_of_filters, int steps) {
        tile = PARTS == 1 ? number : number % tiles;
        part = PARTS == 1 ? 0 : number / tiles;
        filter = tile % tiles_of_filters * FILTERS;
        pixel = tile / tiles_of_filters * PIXELS;
        first = steps * part / PARTS;
        end = steps * (part + 1) / PARTS;
    }
};

// Copies all windows of a block's tiles, and the filters; by one thread.
__device__ __forceinline__ void produce(
    const Shared& shared, const char* maps, int tiles, int tiles_of_filters, int steps, int p, int q, int c, int r, int s) {
    if (RESIDENT) {
        barrier_expect(shared.ready, RESIDENT * W_BYTES);
        int step = 0;
#pragma unroll 1
        for (int tap = 0; tap < r * r; ++tap) {
#pragma unroll 1
            for (int channel = 0; channel < c; channel += DEPTH, ++step) {
                load_taps(shared.w(0, step), maps + 128, channel, tap, 0, shared.ready);
            }
        }
    }
    Stage stage;
#pragma unroll 1
    for (int number = blockIdx.x; number < tiles * PARTS; number += gridDim.x) {
        const Work work(number, tiles, tiles_of_filters, steps);
        const int image = work.pixel / (p * q), row = work.pixel / q % p * s - r / 2, column = work.pixel % q * s - r / 2;
        const int steps_of_tap = (c + DEPTH - 1) / DEPTH;
        int tap = work.first / steps_of_tap, i = tap / r, j = tap % r, channel = work.first % steps_of_tap * DEPTH;
#pragma unroll 1
        for (int step = work.first; step < work.end; ++step, stage.next()) {
            const unsigned full = shared.full + 8 * stage.number;
            barrier_wait(shared.empty + 8 * stage.number, stage.parity ^ 1);
            barrier_expect(full, STAGE_BYTES);
            load_windows(shared.x(stage.number), maps, channel, column, row, image, j, i, full);
            if (!RESIDENT) {
                load_taps(shared.w(stage.number, 0), maps + 128, channel, tap, work.filter, full);
            }
            channel += DEPTH;
            if (channel >= c) {
                channel = 0;
                ++tap;
                if (++j == r) {
                    j = 0;
                    ++i;
                }
            }
        }
    }
}

// With parts, sums of this warpgroup's part go to memory; whether it is the last one of its tile, which then has the sums of all parts.
// `sums_of_parts` and `arrived`, zero before and after a launch, have a place for each tile and warpgroup.
__device__ __forceinline__ bool has_all_parts(
    float (&sums)[SUMS], const Work& work, float4* __restrict__ sums_of_parts, unsigned* __restrict__ arrived, int warpgroup, unsigned last) {
    if (PARTS == 1) {
        return true;
    }
    const int place = work.tile * CONSUMERS + warpgroup;
    float4* of_tile = sums_of_parts + (long long)place * PARTS * (SUMS / 4 * WARPGROUP) + threadIdx.x % WARPGROUP;
    store_part(of_tile + work.part * (SUMS / 4 * WARPGROUP), sums);
    if (!is_last_warpgroup(arrived + place, PARTS, warpgroup, last)) {
        return false;
    }
#pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        sums[i] = 0.0f;
    }
#pragma unroll 1
    for (int part = 0; part < PARTS; ++part) {
        add_part(sums, of_tile + part * (SUMS / 4 * WARPGROUP));
    }
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) conv_wgmma(
    const __grid_constant__ Maps<3> maps, const ELEMENT* __restrict__ bias, float4* __restrict__ sums_of_parts, unsigned* __restrict__ arrived, int pixels, int p, int q, int c, int k, int r, int s) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const Shared shared((unsigned)__cvta_generic_to_shared(memory));
    const int tiles_of_filters = (k + FILTERS - 1) / FILTERS;
    const int tiles = (pixels + PIXELS - 1) / PIXELS * tiles_of_filters;
    const int steps = r * r * ((c + DEPTH - 1) / DEPTH);
    const int warpgroup = threadIdx.x / WARPGROUP;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(shared.full + 8 * stage, 1);
            barrier_init(shared.empty + 8 * stage, CONSUMERS);
        }
        barrier_init(shared.ready, 1);
        barrier_init_done();
    }
    __syncthreads();

    if (warpgroup == CONSUMERS) {
        release_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
            produce(shared, maps, tiles, tiles_of_filters, steps, p, q, c, r, s);
        }
    } else {
        take_registers<CONSUMER_REGISTERS>();
        const int t = threadIdx.x % WARPGROUP;
        // Which part of a tile a warpgroup has.
        const int of_filters = FILTERS == 128 ? 64 * warpgroup : 0, of_pixels = FILTERS == 128 ? 0 : WIDTH * warpgroup;
        Stage stage;
        int next_box = 0;
        if (RESIDENT) {
            barrier_wait(shared.ready, 0);
        }
#pragma unroll 1
        for (int number = blockIdx.x; number < tiles * PARTS; number += gridDim.x) {
            const Work work(number, tiles, tiles_of_filters, steps);
            const int filter0 = work.filter + of_filters, pixel0 = work.pixel + of_pixels;
            const Bias of_filter(bias, filter0 + t / 32 * 16 + t % 32 / 4, k);
            float sums[SUMS];
            int before = -1;
            for (int i = work.first; i < work.end; ++i, stage.next()) {
                barrier_wait(shared.full + 8 * stage.number, stage.parity);
                wgmma_fence();
#pragma unroll
                for (int step = 0; step < DEPTH / 16; ++step) {
                    const unsigned w = shared.w(stage.number, i) + of_filters * ROW_BYTES;
                    const unsigned x = shared.x(stage.number) + of_pixels * ROW_BYTES;
                    wgmma<true, true>(sums, operand(w, step), operand(x, step), i > work.first || step > 0);
                }
                wgmma_commit();
                // One group of wgmmas may still run; the stage of the one before it is free.
                wgmma_wait<1>();
                if (before >= 0 && t == 0) {
                    barrier_arrive(shared.empty + 8 * before);
                }
                before = stage.number;
            }
            wgmma_wait<0>();
            if (t == 0) {
                barrier_arrive(shared.empty + 8 * before);
            }
            // Whole warpgroups.
            if (filter0 < k && has_all_parts(sums, work, sums_of_parts, arrived, warpgroup, shared.last + 4 * warpgroup)) {
                store(sums, of_filter, shared.boxes + warpgroup * BOXES * BOX_BYTES, next_box, maps + 256, filter0, pixel0, warpgroup);
            }
        }
        if (t == 0) {
            store_wait();
        }
    }
}
