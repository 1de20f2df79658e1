// Attention on Hopper's tensor cores: O = softmax(Q Kᵀ / √DIMENSION) V in bf16 or fp16, added up in fp32. All tensors are (batch, sequence, heads,
// DIMENSION). Several heads of Q may share one of K and V. It is the CUDA C++ ladder of `attention` and `causal_attention`.
//
// A block computes tiles of ROWS queries of a head, each with all keys that the tile needs, KEYS at a time. One warpgroup copies by TMA, CONSUMERS
// others compute 64 queries each. They keep the scores, the weights and O in registers. The maximum and the sum of a row of scores are updated with
// each KEYS keys ("online softmax"), and O is rescaled whenever the maximum grows.
//
// The ideas that are switched on one after the other by definitions:
//   PING_PONG   1: two warpgroups take turns with the tensor cores, so that the products of one run during the exponentials of the other
//   OVERLAP     1: a warpgroup computes the exponentials of one tile of scores while the tensor cores multiply the last weights with V; 2: and
//               while they compute the next scores, for which it needs registers of its own
//   VARIABLE    1: sequences of different lengths follow each other as one batch; `ends` has the position after each. 0: all are `length` long
//   CAUSAL      1: a query attends to keys up to its own position only
//   PERSISTENT  1: as many blocks as are resident at once take tiles from a counter, and load for the next tile while they store O; if CAUSAL, the
//               tiles with most keys come first among those of `heads_at_once` heads. 0: a block for each tile
//   O_BY_TMA    1: O goes to memory by TMA through shared memory of its own; 0: from registers, 16 bytes a thread
// STAGES is the number of tiles of K, and of V, in shared memory.
// `maps` holds four tensor maps of boxes of 64 elements of the dimension, swizzled by 128 bytes: Q in boxes of ROWS rows, K and V in boxes of KEYS
// rows, O in boxes of 64 rows. TMA fills what is behind the end of a sequence with zeros, and writes nothing there.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "row_fragments.cuh"
#include "row_parts.cuh"
#include "tma_blocks.cuh"
#include "warpgroups.cuh"
#include "wgmma_attention.cuh"

constexpr int ROWS = 64 * CONSUMERS, WARPGROUP = 128, THREADS = WARPGROUP * (CONSUMERS + 1);
constexpr int BOXES = DIMENSION / 64;
constexpr int Q_BOX = ROWS * 128, KEY_BOX = KEYS * 128, O_BOX = 64 * 128;  // bytes
constexpr int Q_BYTES = BOXES * Q_BOX, KEY_BYTES = BOXES * KEY_BOX;
constexpr int O_BYTES = O_BY_TMA ? CONSUMERS * BOXES * O_BOX : 0;
constexpr int SCORES = KEYS / 2, WEIGHTS = KEYS / 4, SUMS = DIMENSION / 2;  // registers of a thread
static_assert(KEYS % 16 == 0 && DIMENSION % 64 == 0);

#define CLUSTER 1
#include "stages.cuh"

// All shared memory is dynamic: Q, the stages of K, those of V, O, the barriers, then two tiles of queries.
struct Shared {
    unsigned q, k, v, o, q_full, q_empty, k_full, k_empty, v_full, v_empty, tiles;

    __device__ __forceinline__ Shared() {
        q = aligned_shared_memory();
        k = q + Q_BYTES;
        v = k + STAGES * KEY_BYTES;
        o = v + STAGES * KEY_BYTES;
        q_full = o + O_BYTES;
        q_empty = q_full + 8;
        k_full = q_empty + 8;
        k_empty = k_full + 8 * STAGES;
        v_full = k_empty + 8 * STAGES;
        v_empty = v_full + 8 * STAGES;
        tiles = v_empty + 8 * STAGES;  // 16 (1 + 2 STAGES) bytes after O
    }
};

// A tile of queries: of which sequence and head, and how many tiles of keys it needs. The sequence has `length` positions; in the tensors, its first one
// is position `start` of `batch`.
struct Tile {
    int row, key_tiles, start, length, head, batch;

    __device__ __forceinline__ void find_keys() {
        const int keys = CAUSAL ? min(length, row + ROWS) : length;
        key_tiles = (keys + KEYS - 1) / KEYS;
    }
};

// The tiles of a block, one after the other, by the thread that copies.
struct Schedule {
    int length, heads, all_heads, heads_at_once;  // if VARIABLE, `length` is the number of sequences
    const int* ends;
    unsigned* counters;
    int round = 0, sequence = 0, tiles_before = 0, start = 0;

    // The last block to find no tile resets the counters for the next launch.
    __device__ __forceinline__ void finish() {
        if (PERSISTENT && atomicAdd(counters + 1, 1) == gridDim.x - 1) {
            counters[0] = 0;
            counters[1] = 0;
        }
    }

    // False after the last tile.
    __device__ __forceinline__ bool next(Tile& tile) {
        if (!PERSISTENT && round > 0) {
            return false;
        }
        const int number = round == 0 ? blockIdx.x : gridDim.x + atomicAdd(counters, 1);
        ++round;
        return VARIABLE ? in_sequences(tile, number) : in_batches(tile, number);
    }

    // All heads of a tile of a sequence, then those of the next tile.
    __device__ __forceinline__ bool in_sequences(Tile& tile, int number) {
        const int of_head = number / heads;
        for (; sequence < length; ++sequence) {
            const int end = __ldg(ends + sequence), tiles = (end - start + ROWS - 1) / ROWS;
            if (of_head < tiles_before + tiles) {
                tile.row = (CAUSAL ? tiles - 1 - (of_head - tiles_before) : of_head - tiles_before) * ROWS;
                tile.head = number - of_head * heads;
                tile.batch = 0;
                tile.start = start;
                tile.length = end - start;
                tile.find_keys();
                return true;
            }
            tiles_before += tiles;
            start = end;
        }
        return false;
    }

    // All tiles of some heads, then those of other heads.
    __device__ __forceinline__ bool in_batches(Tile& tile, int number) {
        const int tiles = (length + ROWS - 1) / ROWS;
        const int group = number / (tiles * heads_at_once);
        const int within = number - group * tiles * heads_at_once;
        const int heads_here = min(heads_at_once, all_heads - group * heads_at_once);
        if (heads_here <= 0) {
            return false;
        }
        int of_all;
        if (CAUSAL && PERSISTENT) {  // the tiles with most keys first
            tile.row = (tiles - 1 - within / heads_here) * ROWS;
            of_all = group * heads_at_once + within % heads_here;
        } else {
            tile.row = within % tiles * ROWS;
            of_all = group * heads_at_once + within / tiles;
        }
        if (of_all >= all_heads || tile.row < 0) {
            return false;
        }
        tile.batch = of_all / heads;
        tile.head = of_all - tile.batch * heads;
        tile.start = 0;
        tile.length = length;
        tile.find_keys();
        return true;
    }
};

// A tile from the thread that copies to all others; none is one without keys. There are two places: when one is written again, every thread has
// passed a barrier of its warpgroup since it read it.
__device__ __forceinline__ void write_tile(const Shared& shared, int round, const Tile& tile) {
    const unsigned to = shared.tiles + round % 2 * 32;
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(tile.row), "r"(tile.key_tiles), "r"(tile.start), "r"(tile.length)
                 : "memory");
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to + 16), "r"(tile.head), "r"(tile.batch) : "memory");
}
__device__ __forceinline__ Tile read_tile(const Shared& shared, int round) {
    const unsigned from = shared.tiles + round % 2 * 32;
    Tile tile;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile.row), "=r"(tile.key_tiles), "=r"(tile.start), "=r"(tile.length)
                 : "r"(from)
                 : "memory");
    unsigned head, batch;
    load_two(head, batch, from + 16);
    tile.head = head;
    tile.batch = batch;
    return tile;
}

__device__ __forceinline__ float infinity() {
    return __int_as_float(0x7f800000);
}

// What one warpgroup knows of its 64 queries. A thread has two of them, `t / 4` and eight further, of each of 16 rows of its warp, and of each
// eight columns two neighbouring ones.
struct Rows {
    float maximum[2], sum[2];  // of the scores, before they are scaled; of the thread's own weights
    float o[SUMS];

    __device__ __forceinline__ void multiply(const unsigned (&weights)[WEIGHTS], unsigned v_tile) {
#pragma unroll
        for (int step = 0; step < KEYS / 16; ++step) {  // 16 keys further are 2048 bytes further
            wgmma_values(o, weights + 4 * step, wgmma_operand(v_tile + step * 2048, KEY_BOX, 1024));
        }
    }

    __device__ __forceinline__ void rescale(const float (&factors)[2]) {
#pragma unroll
        for (int i = 0; i < SUMS; i += 4) {
            o[i] *= factors[0];
            o[i + 1] *= factors[0];
            o[i + 2] *= factors[1];
            o[i + 3] *= factors[1];
        }
    }

    // Scores become weights, relative to the new maximum; `factors` is what older weights are to be multiplied with.
    template <bool First> __device__ __forceinline__ void softmax(float (&scores)[SCORES], float (&factors)[2], float scale) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float most = First ? scores[2 * half] : maximum[half];
#pragma unroll
            for (int i = 2 * half; i < SCORES; i += 4) {
                most = fmaxf(most, fmaxf(scores[i], scores[i + 1]));
            }
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            // Where all keys so far are masked, any finite number serves: all weights are 0.
            const float reference = most == -infinity() ? 0.0f : most * scale;
            factors[half] = First ? 1.0f : exp2_fast(maximum[half] * scale - reference);
            maximum[half] = most;
            float added = 0.0f;
#pragma unroll
            for (int i = 2 * half; i < SCORES; i += 4) {
                scores[i] = exp2_fast(scores[i] * scale - reference);
                scores[i + 1] = exp2_fast(scores[i + 1] * scale - reference);
                added += scores[i] + scores[i + 1];
            }
            sum[half] = First ? added : sum[half] * factors[half] + added;
        }
    }
};

__device__ __forceinline__ void round_weights(const float (&scores)[SCORES], unsigned (&weights)[WEIGHTS]) {
#pragma unroll
    for (int i = 0; i < WEIGHTS; ++i) {
        weights[i] = pair(scores[2 * i], scores[2 * i + 1]);
    }
}

// The scores of 64 queries, before they are scaled.
__device__ __forceinline__ void score(float (&scores)[SCORES], unsigned q, unsigned k_tile) {
#pragma unroll
    for (int step = 0; step < DIMENSION / 16; ++step) {  // 16 elements further are 32 bytes further in a box of 64
        const int box = step / 4, within = step % 4 * 32;
        wgmma<true, true>(
            scores, wgmma_operand(q + box * Q_BOX + within, 16, 1024), wgmma_operand(k_tile + box * KEY_BOX + within, 16, 1024), step > 0);
    }
}

// Keys after the last one, and if CAUSAL those after a query, get no weight.
__device__ __forceinline__ void mask(float (&scores)[SCORES], int first_row, int first_key, int length) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int last = CAUSAL ? min(length - 1, first_row + row_of_thread(half)) : length - 1;
        const int most = last - first_key - threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 2 * half; i < SCORES; i += 4) {
            const int key = i / 4 * 8;
            if (key > most) {
                scores[i] = -infinity();
            }
            if (key + 1 > most) {
                scores[i + 1] = -infinity();
            }
        }
    }
}

// Two warpgroups take turns: each waits for its turn before it issues products, and then gives it to the other.
__device__ __forceinline__ void wait_for_turn(int warpgroup) {
    if (PING_PONG) {
        asm volatile("bar.sync %0, 256;" ::"r"(warpgroup + 4) : "memory");
    }
}
__device__ __forceinline__ void give_turn(int warpgroup) {
    if (PING_PONG) {
        asm volatile("bar.arrive %0, 256;" ::"r"(warpgroup + 4) : "memory");
    }
}
static_assert(!PING_PONG || CONSUMERS == 2);
static_assert(!VARIABLE || (PERSISTENT && !O_BY_TMA && !LOG_SUMS), "a box of O would reach into the next sequence");

// O to memory, each row divided by the sum of its weights.
__device__ __forceinline__ void store(
    const Shared& shared, Rows& rows, const char* map, ELEMENT* __restrict__ o, const Tile& tile, int warpgroup, int heads) {
    const float factors[2] = {1.0f / rows.sum[0], 1.0f / rows.sum[1]};
    rows.rescale(factors);
    const int first_row = tile.row + 64 * warpgroup;
#if O_BY_TMA
    const int t = threadIdx.x % WARPGROUP, lane = t % 32;
    const unsigned boxes = shared.o + warpgroup * BOXES * O_BOX;
    if (t == 0) {
        store_wait_read<0>();  // the store of the last tile has read its boxes
    }
    warpgroup_barrier(warpgroup);
    // The matrices of a store: rows 0 to 7 and 8 to 15 of eight columns, and of the next eight columns.
    const int row = t / 32 * 16 + lane / 8 % 2 * 8 + lane % 8;
#pragma unroll
    for (int eight = 0; eight < DIMENSION / 8; eight += 2) {
        const float* part = rows.o + 4 * eight;
        const unsigned box = boxes + eight / 8 * O_BOX;
        store_matrices(
            box + row * 128 + ((eight % 8 + lane / 16 ^ lane % 8) << 4), pair(part[0], part[1]), pair(part[2], part[3]), pair(part[4], part[5]),
            pair(part[6], part[7]));
    }
    fence_for_tma();
    warpgroup_barrier(warpgroup);
    if (t == 0 && first_row < tile.length) {
#pragma unroll
        for (int box = 0; box < BOXES; ++box) {
            store_block(boxes + box * O_BOX, map, 64 * box, first_row, tile.head, tile.batch);
        }
        store_commit();
    }
#else
    warpgroup_barrier(warpgroup);  // for `write_tile`
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int row = first_row + row_of_thread(half);
        const long long position = (long long)tile.batch * tile.length + tile.start + row;
        store_row(rows.o, half, o + (position * heads + tile.head) * DIMENSION, row < tile.length);
    }
#endif
}

// The scores of key tile `i`, and the weighted sum with the weights of tile `i` + 1, whose products are issued together.
#if OVERLAP < 2
template <bool Masked> __device__ __forceinline__ void next_keys(
    const Shared& shared, Rows& rows, unsigned (&weights)[WEIGHTS], unsigned q, Stage& k_stage, Stage& v_stage, int i, int warpgroup,
    int first_row, int length, float scale) {
    const bool leader = threadIdx.x % WARPGROUP == 0;
    float scores[SCORES], factors[2];
    barrier_wait(shared.k_full + 8 * k_stage.number, k_stage.parity);
    wait_for_turn(warpgroup);
    wgmma_fence();
    score(scores, q, shared.k + k_stage.number * KEY_BYTES);
    wgmma_commit();
    barrier_wait(shared.v_full + 8 * v_stage.number, v_stage.parity);
    rows.multiply(weights, shared.v + v_stage.number * KEY_BYTES);
    wgmma_commit();
    give_turn(warpgroup ^ 1);
    wgmma_wait<OVERLAP>();
    order_registers(scores);
    if (leader) {
        barrier_arrive(shared.k_empty + 8 * k_stage.number);
    }
    k_stage.next();
    if (Masked) {
        mask(scores, first_row, i * KEYS, length);
    }
    rows.softmax<false>(scores, factors, scale);
    if (OVERLAP) {
        wgmma_wait<0>();
    }
    order_registers(rows.o);
    if (leader) {
        barrier_arrive(shared.v_empty + 8 * v_stage.number);
    }
    v_stage.next();
    rows.rescale(factors);
    round_weights(scores, weights);
}
#else
// The exponentials of key tile `i`, whose scores have been computed, beside the next scores and the weighted sum of tile `i` + 1.
template <bool First, bool Last> __device__ __forceinline__ void next_keys(
    const Shared& shared, Rows& rows, float (&scores)[SCORES], float (&next_scores)[SCORES], unsigned (&weights)[WEIGHTS], unsigned q,
    Stage& k_stage, Stage& v_stage, int i, int first_row, int length, float scale) {
    const bool leader = threadIdx.x % WARPGROUP == 0;
    float factors[2];
    wgmma_fence();
    if (!Last) {
        barrier_wait(shared.k_full + 8 * k_stage.number, k_stage.parity);
        score(next_scores, q, shared.k + k_stage.number * KEY_BYTES);
        wgmma_commit();
    }
    if (!First) {
        barrier_wait(shared.v_full + 8 * v_stage.number, v_stage.parity);
        rows.multiply(weights, shared.v + v_stage.number * KEY_BYTES);
        wgmma_commit();
    }
    if (CAUSAL ? (i + 1) * KEYS > first_row : (i + 1) * KEYS > length) {
        mask(scores, first_row, i * KEYS, length);
    }
    rows.softmax<First>(scores, factors, scale);
    wgmma_wait<0>();
    order_registers(rows.o);
    if (!Last) {
        order_registers(next_scores);
        if (leader) {
            barrier_arrive(shared.k_empty + 8 * k_stage.number);
        }
        k_stage.next();
    }
    if (!First) {
        if (leader) {
            barrier_arrive(shared.v_empty + 8 * v_stage.number);
        }
        v_stage.next();
        rows.rescale(factors);
    }
    round_weights(scores, weights);
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1) attention_wgmma(
    const __grid_constant__ Maps<4> maps, ELEMENT* __restrict__ o, float* __restrict__ log_sums, const int* __restrict__ ends,
    unsigned* __restrict__ counters, float scale, int batches, int length, int heads,
    int key_heads, int heads_at_once) {
    const Shared shared;
    const int warpgroup = threadIdx.x / WARPGROUP;

    if (threadIdx.x == 0) {
        barrier_init(shared.q_full, 1);
        barrier_init(shared.q_empty, CONSUMERS);
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(shared.k_full + 8 * stage, 1);
            barrier_init(shared.k_empty + 8 * stage, CONSUMERS);
            barrier_init(shared.v_full + 8 * stage, 1);
            barrier_init(shared.v_empty + 8 * stage, CONSUMERS);
        }
        barrier_init_done();
    }
    __syncthreads();

    if (warpgroup == CONSUMERS) {
        // The last warpgroup copies. K of a tile is copied before V of the tile before it, the order in which they are needed.
        release_registers<CONSUMERS == 3 ? 32 : 24>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
            Stage k_stage, v_stage;
            Schedule schedule{length, heads, batches * heads, heads_at_once, ends, counters};
#pragma unroll 1
            for (int round = 0;; ++round) {
                Tile tile{};
                const bool found = schedule.next(tile);
                barrier_wait(shared.q_empty, round % 2 ^ 1);
                write_tile(shared, round, tile);
                if (!found) {
                    schedule.finish();
                    barrier_arrive(shared.q_full);
                    break;
                }
                const int key_head = tile.head / (heads / key_heads);
                barrier_expect(shared.q_full, Q_BYTES);
                load_blocks<BOXES>(shared.q, Q_BOX, maps, tile.start + tile.row, tile.head, tile.batch, shared.q_full);
#pragma unroll 1
                for (int i = tile.key_tiles - 1; i >= -1; --i) {
                    if (i >= 0) {
                        const unsigned full = shared.k_full + 8 * k_stage.number;
                        barrier_wait(shared.k_empty + 8 * k_stage.number, k_stage.parity ^ 1);
                        barrier_expect(full, KEY_BYTES);
                        load_blocks<BOXES>(
                            shared.k + k_stage.number * KEY_BYTES, KEY_BOX, maps + 128, tile.start + i * KEYS, key_head, tile.batch, full);
                        k_stage.next();
                    }
                    if (i < tile.key_tiles - 1) {
                        const unsigned full = shared.v_full + 8 * v_stage.number;
                        barrier_wait(shared.v_empty + 8 * v_stage.number, v_stage.parity ^ 1);
                        barrier_expect(full, KEY_BYTES);
                        load_blocks<BOXES>(
                            shared.v + v_stage.number * KEY_BYTES, KEY_BOX, maps + 256, tile.start + (i + 1) * KEYS, key_head, tile.batch, full);
                        v_stage.next();
                    }
                }
            }
        }
    } else {
        take_registers<CONSUMERS == 3 ? 160 : 240>();
        const bool leader = threadIdx.x % WARPGROUP == 0;
        if (PING_PONG && warpgroup == 1) {
            give_turn(0);
        }
        const unsigned q = shared.q + warpgroup * 64 * 128;
        Stage k_stage, v_stage;
#pragma unroll 1
        for (int round = 0;; ++round) {
            barrier_wait(shared.q_full, round % 2);
            const Tile tile = read_tile(shared, round);
            if (tile.key_tiles == 0) {
                break;
            }
            const int first_row = tile.row + 64 * warpgroup;
            Rows rows;
            unsigned weights[WEIGHTS];
#pragma unroll
            for (int i = 0; i < SUMS; ++i) {
                rows.o[i] = 0.0f;
            }
            int i = tile.key_tiles - 1;
#if OVERLAP < 2
            {
                float scores[SCORES], factors[2];
                barrier_wait(shared.k_full + 8 * k_stage.number, k_stage.parity);
                wgmma_fence();
                score(scores, q, shared.k + k_stage.number * KEY_BYTES);
                wgmma_commit();
                wgmma_wait<0>();
                order_registers(scores);
                if (leader) {
                    barrier_arrive(shared.k_empty + 8 * k_stage.number);
                }
                k_stage.next();
                mask(scores, first_row, i * KEYS, tile.length);
                rows.softmax<true>(scores, factors, scale);
                round_weights(scores, weights);
            }
            --i;
            if (CAUSAL) {
#pragma unroll 1
                for (; i >= 0 && (i + 1) * KEYS > tile.row + 1; --i) {
                    next_keys<true>(shared, rows, weights, q, k_stage, v_stage, i, warpgroup, first_row, tile.length, scale);
                }
            }
#pragma unroll 1
            for (; i >= 0; --i) {
                next_keys<false>(shared, rows, weights, q, k_stage, v_stage, i, warpgroup, first_row, tile.length, scale);
            }
#else
            float scores[SCORES], next_scores[SCORES];
            barrier_wait(shared.k_full + 8 * k_stage.number, k_stage.parity);
            wgmma_fence();
            score(scores, q, shared.k + k_stage.number * KEY_BYTES);
            wgmma_commit();
            wgmma_wait<0>();
            order_registers(scores);
            if (leader) {
                barrier_arrive(shared.k_empty + 8 * k_stage.number);
            }
            k_stage.next();
            if (i == 0) {
                next_keys<true, true>(shared, rows, scores, next_scores, weights, q, k_stage, v_stage, i, first_row, tile.length, scale);
            } else {
                next_keys<true, false>(shared, rows, scores, next_scores, weights, q, k_stage, v_stage, i, first_row, tile.length, scale);
                --i;
#pragma unroll 1
                for (; i > 1; i -= 2) {
                    next_keys<false, false>(shared, rows, next_scores, scores, weights, q, k_stage, v_stage, i, first_row, tile.length, scale);
                    --i;
                    next_keys<false, false>(shared, rows, scores, next_scores, weights, q, k_stage, v_stage, i, first_row, tile.length, scale);
                    ++i;
                }
                if (i == 1) {
                    next_keys<false, false>(shared, rows, next_scores, scores, weights, q, k_stage, v_stage, i, first_row, tile.length, scale);
                    i = 0;
                    next_keys<false, true>(shared, rows, scores, next_scores, weights, q, k_stage, v_stage, i, first_row, tile.length, scale);
                } else {
                    next_keys<false, true>(shared, rows, next_scores, scores, weights, q, k_stage, v_stage, i, first_row, tile.length, scale);
                }
            }
#endif
            if (leader) {
                barrier_arrive(shared.q_empty);
            }
            barrier_wait(shared.v_full + 8 * v_stage.number, v_stage.parity);
            order_registers(rows.o);
            wgmma_fence();
            rows.multiply(weights, shared.v + v_stage.number * KEY_BYTES);
            wgmma_commit();
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                rows.sum[half] += __shfl_xor_sync(~0u, rows.sum[half], 1);
                rows.sum[half] += __shfl_xor_sync(~0u, rows.sum[half], 2);
            }
            wgmma_wait<0>();
            order_registers(rows.o);
            if (leader) {
                barrier_arrive(shared.v_empty + 8 * v_stage.number);
            }
            v_stage.next();
            if (LOG_SUMS && threadIdx.x % 4 == 0) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int row = first_row + row_of_thread(half);
                    if (row < tile.length) {
                        log_sums[((long long)tile.batch * heads + tile.head) * ((length + 63) / 64 * 64) + row] =
                            rows.maximum[half] * scale + __log2f(rows.sum[half]);
                    }
                }
            }
            store(shared, rows, maps + 384, o, tile, warpgroup, heads);
        }
        if (O_BY_TMA && leader) {
            store_wait();
        }
    }
}
