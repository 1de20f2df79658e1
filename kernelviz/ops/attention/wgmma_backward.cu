// The backward pass of attention on Hopper's tensor cores: from q, k, v (batch, sequence, heads, DIMENSION), the gradient of o, and what the
// forward pass left (o, and for each query the base-2 logarithm of its sum of exponentials), the gradients of q, k and v.
//
// With the weights W = exp2(Q Kᵀ scale - log sum) and Δ = Σ dO O:  dS = W (dO Vᵀ - Δ),  dV = Wᵀ dO,  dK = dSᵀ Q / √D,  dQ = dS K / √D.
//
// Three kernels, one after the other, the first and the last in wgmma_backward_rows.cu:
//   attention_delta     Δ of each query, and zeros for the sums of dQ
//   attention_backward  a block computes dK and dV of KEYS keys, QUERIES queries at a time. One warpgroup copies by TMA, two others compute 64 keys
//                       each. Scores are computed as their transpose, so that weights and dS are in the registers from which the tensor cores
//                       multiply them with dO and Q. dS goes through shared memory to the other warpgroup, too: each computes half of the
//                       columns of dQ from all keys of the block, and TMA adds that to sums in memory, in fp32. The order of these additions is
//                       not determined, so dQ differs between calls by roundings; dK and dV do not.
//   attention_query     dQ from its sums, and if PARTS dK and dV from those of the parts
// Query heads that share a key head are computed one after the other by the same block. If PARTS, a block has only some of these steps, each of
// which is a tile of queries of a head: `table` has for each block the tile of keys, the first step and that after the last one
// (backward_parts.py). It writes its sums of dK and dV, in fp32 and in the order in which the threads have them, to `sums`.
// The definition CAUSAL is as in wgmma.cu.
// `maps` holds four tensor maps of boxes of 64 elements of the dimension, swizzled by 128 bytes: Q, K, V and dO, those of Q and dO with
// QUERIES rows, those of K and V with KEYS rows. `log_sums` and `deltas` are (batch, heads, sequence rounded up to QUERIES).
// The sums of dQ are stored by tiles of QUERIES rows, warpgroups and threads, in the order in which the threads have them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "row_fragments.cuh"
#include "row_parts.cuh"
#include "tma_blocks.cuh"
#include "warpgroups.cuh"
#include "wgmma_attention.cuh"

constexpr int KEYS = 128, QUERIES = 64, WARPGROUP = 128, THREADS = 3 * WARPGROUP;
constexpr int BOXES = DIMENSION / 64;
constexpr int KEY_BOX = KEYS * 128, QUERY_BOX = QUERIES * 128;  // bytes
constexpr int KEY_BYTES = BOXES * KEY_BOX, QUERY_BYTES = BOXES * QUERY_BOX, VECTOR_BYTES = QUERIES * 4;
constexpr int DS_BYTES = KEYS * QUERIES * 2, DQ_BYTES = QUERIES * DIMENSION / 2 * 4;  // the latter of one warpgroup
constexpr int SCORES = QUERIES / 2, WEIGHTS = QUERIES / 4, SUMS = DIMENSION / 2, DQ_SUMS = DIMENSION / 4;  // registers of a thread
static_assert(DIMENSION == 64 || DIMENSION == 128);

#define CLUSTER 1
#include "stages.cuh"

// All shared memory is dynamic: K, V, the stages of Q and dO, two tiles of dS, dQ of both warpgroups, the stages of log sums and Δ, the barriers.
struct Shared {
    unsigned k, v, q, d_o, ds, dq, log_sums, deltas, kv_full, q_full, q_empty, do_full, do_empty;

    __device__ __forceinline__ Shared() {
        k = aligned_shared_memory();
        v = k + KEY_BYTES;
        q = v + KEY_BYTES;
        d_o = q + STAGES * QUERY_BYTES;
        ds = d_o + STAGES * QUERY_BYTES;
        dq = ds + 2 * DS_BYTES;
        log_sums = dq + 2 * DQ_BYTES;
        deltas = log_sums + STAGES * VECTOR_BYTES;
        kv_full = deltas + STAGES * VECTOR_BYTES;
        q_full = kv_full + 8;
        q_empty = q_full + 8 * STAGES;
        do_full = q_empty + 8 * STAGES;
        do_empty = do_full + 8 * STAGES;
    }
};

__device__ __forceinline__ void load_vector(unsigned to, const float* from, unsigned full) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
                 "n"(VECTOR_BYTES), "r"(full)
                 : "memory");
}

// (64 keys × QUERIES): of a warpgroup's rows of K or V, and all rows of Q or dO.
__device__ __forceinline__ void multiply_transposed(float (&d)[SCORES], unsigned keys, unsigned queries) {
#pragma unroll
    for (int step = 0; step < DIMENSION / 16; ++step) {  // 16 elements further are 32 bytes further in a box of 64
        const int box = step / 4, within = step % 4 * 32;
        wgmma<true, true>(
            d, wgmma_operand(keys + box * KEY_BOX + within, 16, 1024), wgmma_operand(queries + box * QUERY_BOX + within, 16, 1024),
            step > 0);
    }
}

// (64 keys × DIMENSION): of weights or dS in registers, and dO or Q.
__device__ __forceinline__ void add_product(float (&d)[SUMS], const unsigned (&weights)[WEIGHTS], unsigned queries) {
#pragma unroll
    for (int step = 0; step < QUERIES / 16; ++step) {  // 16 queries further are 2048 bytes further
        wgmma_values(d, weights + 4 * step, wgmma_operand(queries + step * 2048, QUERY_BOX, 1024));
    }
}

// Half of the columns of dQ: of dS of all keys of the block, and K.
__device__ __forceinline__ void multiply_by_keys(float (&d)[DQ_SUMS], unsigned ds, unsigned keys) {
#pragma unroll
    for (int step = 0; step < KEYS / 16; ++step) {
        wgmma<false, false>(d, wgmma_operand(ds + step * 2048, 16, 1024), wgmma_operand(keys + step * 2048, 16, 1024), step > 0);
    }
}

// Two numbers for two neighbouring queries.
__device__ __forceinline__ void load_numbers(float (&two)[2], unsigned from) {
    unsigned first, second;
    load_two(first, second, from);
    two[0] = __uint_as_float(first);
    two[1] = __uint_as_float(second);
}

__device__ __forceinline__ void round_to_pairs(const float (&numbers)[SCORES], unsigned (&pairs)[WEIGHTS]) {
#pragma unroll
    for (int i = 0; i < WEIGHTS; ++i) {
        pairs[i] = pair(numbers[2 * i], numbers[2 * i + 1]);
    }
}

// Scores become weights. Keys behind the end, and if CAUSAL those after a query, have none; they are rows, queries are columns.
template <bool Masked> __device__ __forceinline__ void weigh(
    float (&scores)[SCORES], unsigned log_sums, float scale, int first_key, int first_query, int length) {
    const int quarter = threadIdx.x % 4;
#pragma unroll
    for (int eight = 0; eight < QUERIES / 8; ++eight) {
        float sums[2];
        load_numbers(sums, log_sums + (8 * eight + 2 * quarter) * 4);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float& score = scores[4 * eight + i];
            score = exp2_fast(score * scale - sums[i % 2]);
            if (Masked) {
                const int key = first_key + row_of_thread(i / 2);
                const int query = first_query + 8 * eight + 2 * quarter + i % 2;
                if (key >= length || (CAUSAL && key > query)) {
                    score = 0.0f;
                }
            }
        }
    }
}

__device__ __forceinline__ void differentiate(float (&products)[SCORES], const float (&weights)[SCORES], unsigned deltas) {
    const int quarter = threadIdx.x % 4;
#pragma unroll
    for (int eight = 0; eight < QUERIES / 8; ++eight) {
        float delta[2];
        load_numbers(delta, deltas + (8 * eight + 2 * quarter) * 4);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            products[4 * eight + i] = weights[4 * eight + i] * (products[4 * eight + i] - delta[i % 2]);
        }
    }
}

// dSᵀ to shared memory, rows of 64 queries, swizzled by 128 bytes.
__device__ __forceinline__ void store_ds(unsigned to, const unsigned (&pairs)[WEIGHTS]) {
    const int t = threadIdx.x % WARPGROUP, lane = t % 32;
    const int row = t / 32 * 16 + lane / 8 % 2 * 8 + lane % 8;
#pragma unroll
    for (int eight = 0; eight < QUERIES / 8; eight += 2) {
        const unsigned* part = pairs + 2 * eight;
        store_matrices(to + row * 128 + ((eight + lane / 16 ^ lane % 8) << 4), part[0], part[1], part[2], part[3]);
    }
}

// What a warpgroup has of dQ, through shared memory to its sums.
__device__ __forceinline__ void add_dq(const float (&dq)[DQ_SUMS], unsigned through, float* sums, int warpgroup) {
    const int t = threadIdx.x % WARPGROUP;
    if (t == 0) {
        store_wait_read<0>();  // what was added before has been read
    }
    warpgroup_barrier(warpgroup);
#pragma unroll
    for (int i = 0; i < DQ_SUMS / 4; ++i) {
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(through + (i * WARPGROUP + t) * 16), "f"(dq[4 * i]), "f"(dq[4 * i + 1]),
                     "f"(dq[4 * i + 2]), "f"(dq[4 * i + 3])
                     : "memory");
    }
    fence_for_tma();
    warpgroup_barrier(warpgroup);
    if (t == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(sums), "r"(through), "n"(DQ_BYTES)
                     : "memory");
        store_commit();
    }
}

__device__ __forceinline__ void store_sums(const float (&sums)[SUMS], float4* to) {
#pragma unroll
    for (int i = 0; i < SUMS / 4; ++i) {
        to[i * 2 * WARPGROUP] = make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
    }
}

struct Gradients {
    float dk[SUMS], dv[SUMS];

    template <bool Masked> __device__ __forceinline__ void add(
        const Shared& shared, Stage& stage, int round, int warpgroup, float* dq_sums, float scale, int first_key, int first_query, int length) {
        const bool leader = threadIdx.x % WARPGROUP == 0;
        const unsigned own_keys = warpgroup * 64 * 128;
        const unsigned q = shared.q + stage.number * QUERY_BYTES, d_o = shared.d_o + stage.number * QUERY_BYTES;
        float scores[SCORES], products[SCORES], dq[DQ_SUMS];
        unsigned weights[WEIGHTS], ds[WEIGHTS];
        barrier_wait(shared.q_full + 8 * stage.number, stage.parity);
        wgmma_fence();
        multiply_transposed(scores, shared.k + own_keys, q);
        wgmma_commit();
        barrier_wait(shared.do_full + 8 * stage.number, stage.parity);
        multiply_transposed(products, shared.v + own_keys, d_o);
        wgmma_commit();
        wgmma_wait<1>();
        order_registers(scores);
        weigh<Masked>(scores, shared.log_sums + stage.number * VECTOR_BYTES, scale, first_key + 64 * warpgroup, first_query, length);
        round_to_pairs(scores, weights);
        wgmma_wait<0>();
        order_registers(products);
        differentiate(products, scores, shared.deltas + stage.number * VECTOR_BYTES);
        round_to_pairs(products, ds);
        const unsigned ds_tile = shared.ds + round % 2 * DS_BYTES;
        store_ds(ds_tile + own_keys, ds);
        fence_for_tma();
        wgmma_fence();
        add_product(dv, weights, d_o);
        wgmma_commit();
        // Both warpgroups have stored dS. Of the two tiles, the other one is read until both have passed this barrier again.
        asm volatile("bar.sync 4, 256;" ::: "memory");
        multiply_by_keys(dq, ds_tile, shared.k + (DIMENSION == 128 ? warpgroup * KEY_BOX : warpgroup * 64));
        wgmma_commit();
        add_product(dk, ds, q);
        wgmma_commit();
        wgmma_wait<1>();
        order_registers(dq);
        if (leader) {
            barrier_arrive(shared.do_empty + 8 * stage.number);
        }
        add_dq(dq, shared.dq + warpgroup * DQ_BYTES, dq_sums + warpgroup * (DQ_BYTES / 4), warpgroup);
        wgmma_wait<0>();
        order_registers(dk);
        order_registers(dv);
        if (leader) {
            barrier_arrive(shared.q_empty + 8 * stage.number);
        }
        stage.next();
    }
};

// Which tiles of queries a block computes of which heads: from `first_tile` on, or if PARTS the steps `first` to `end` of `tiles` a head.
struct Steps {
    int key_head, group, first_tile, query_tiles, tiles, first, end;

    __device__ __forceinline__ Steps(int key_head, int group, int first_key, int query_tiles, int4 part)
        : key_head(key_head),
          group(group),
          first_tile(CAUSAL ? first_key / QUERIES : 0),
          query_tiles(query_tiles),
          tiles(query_tiles - first_tile),
          first(part.y),
          end(part.z) {}

    __device__ __forceinline__ int first_head() const { return PARTS ? key_head * group + first / tiles : key_head * group; }

    __device__ __forceinline__ int end_head() const { return PARTS ? key_head * group + (end + tiles - 1) / tiles : (key_head + 1) * group; }

    __device__ __forceinline__ int begin_of(int head) const {
        return PARTS ? first_tile + max(0, first - (head - key_head * group) * tiles) : first_tile;
    }

    __device__ __forceinline__ int end_of(int head) const {
        return PARTS ? first_tile + min(tiles, end - (head - key_head * group) * tiles) : query_tiles;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, 1) attention_backward(
    const __grid_constant__ Maps<4> maps, const float* __restrict__ log_sums, const float* __restrict__ deltas, float* __restrict__ dq_sums,
    ELEMENT* __restrict__ dk, ELEMENT* __restrict__ dv, float log2_scale, float scale, int length, int heads, int key_heads,
    const int4* __restrict__ table, float4* __restrict__ sums) {
    const Shared shared;
    const int warpgroup = threadIdx.x / WARPGROUP;
    const int query_tiles = (length + QUERIES - 1) / QUERIES, key_tiles = (length + KEYS - 1) / KEYS, group = heads / key_heads;
    const int4 part = PARTS ? table[blockIdx.x] : make_int4(0, 0, 0, 0);
    const unsigned tile_of_all = PARTS ? part.x : blockIdx.x;
    const int first_key = tile_of_all % key_tiles * KEYS, key_head = tile_of_all / key_tiles % key_heads;
    const int batch = tile_of_all / key_tiles / key_heads;
    const Steps steps(key_head, group, first_key, query_tiles, part);

    if (threadIdx.x == 0) {
        barrier_init(shared.kv_full, 1);
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(shared.q_full + 8 * stage, 1);
            barrier_init(shared.q_empty + 8 * stage, 2);
            barrier_init(shared.do_full + 8 * stage, 1);
            barrier_init(shared.do_empty + 8 * stage, 2);
        }
        barrier_init_done();
    }
    __syncthreads();

    if (warpgroup == 2) {
        release_registers<24>();
        if (threadIdx.x == 2 * WARPGROUP) {
            barrier_expect(shared.kv_full, 2 * KEY_BYTES);
            load_blocks<BOXES>(shared.k, KEY_BOX, maps + 128, first_key, key_head, batch, shared.kv_full);
            load_blocks<BOXES>(shared.v, KEY_BOX, maps + 256, first_key, key_head, batch, shared.kv_full);
            Stage stage;
#pragma unroll 1
            for (int head = steps.first_head(); head < steps.end_head(); ++head) {
                const long long vectors = ((long long)batch * heads + head) * query_tiles * QUERIES;
#pragma unroll 1
                for (int tile = steps.begin_of(head); tile < steps.end_of(head); ++tile, stage.next()) {
                    const unsigned q_full = shared.q_full + 8 * stage.number, do_full = shared.do_full + 8 * stage.number;
                    barrier_wait(shared.q_empty + 8 * stage.number, stage.parity ^ 1);
                    barrier_expect(q_full, QUERY_BYTES + VECTOR_BYTES);
                    load_blocks<BOXES>(shared.q + stage.number * QUERY_BYTES, QUERY_BOX, maps, tile * QUERIES, head, batch, q_full);
                    load_vector(shared.log_sums + stage.number * VECTOR_BYTES, log_sums + vectors + tile * QUERIES, q_full);
                    barrier_wait(shared.do_empty + 8 * stage.number, stage.parity ^ 1);
                    barrier_expect(do_full, QUERY_BYTES + VECTOR_BYTES);
                    load_blocks<BOXES>(shared.d_o + stage.number * QUERY_BYTES, QUERY_BOX, maps + 384, tile * QUERIES, head, batch, do_full);
                    load_vector(shared.deltas + stage.number * VECTOR_BYTES, deltas + vectors + tile * QUERIES, do_full);
                }
            }
        }
    } else {
        take_registers<240>();
        Gradients gradients;
#pragma unroll
        for (int i = 0; i < SUMS; ++i) {
            gradients.dk[i] = 0.0f;
            gradients.dv[i] = 0.0f;
        }
        barrier_wait(shared.kv_full, 0);
        const int masked_tiles = first_key + KEYS > length ? query_tiles : CAUSAL ? min(query_tiles, (first_key + KEYS) / QUERIES) : 0;
        Stage stage;
        int round = 0;
#pragma unroll 1
        for (int head = steps.first_head(); head < steps.end_head(); ++head) {
            float* head_sums = dq_sums + ((long long)batch * heads + head) * query_tiles * QUERIES * DIMENSION;
            const int end = steps.end_of(head), masked_end = PARTS ? min(masked_tiles, end) : masked_tiles;
            int tile = steps.begin_of(head);
#pragma unroll 1
            for (; tile < masked_end; ++tile, ++round) {
                gradients.add<true>(
                    shared, stage, round, warpgroup, head_sums + tile * QUERIES * DIMENSION, log2_scale, first_key, tile * QUERIES, length);
            }
#pragma unroll 1
            for (; tile < end; ++tile, ++round) {
                gradients.add<false>(
                    shared, stage, round, warpgroup, head_sums + tile * QUERIES * DIMENSION, log2_scale, first_key, tile * QUERIES, length);
            }
        }
#pragma unroll
        for (int i = 0; i < SUMS; ++i) {
            gradients.dk[i] *= scale;
        }
        if (PARTS) {
            float4* to = sums + (long long)blockIdx.x * (2 * SUMS / 4 * 2 * WARPGROUP) + threadIdx.x;
            store_sums(gradients.dk, to);
            store_sums(gradients.dv, to + SUMS / 4 * 2 * WARPGROUP);
        } else {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int key = first_key + 64 * warpgroup + row_of_thread(half);
                const long long to = (((long long)batch * length + key) * key_heads + key_head) * DIMENSION;
                store_row(gradients.dk, half, dk + to, key < length);
                store_row(gradients.dv, half, dv + to, key < length);
            }
        }
        if (threadIdx.x % WARPGROUP == 0) {
            store_wait();
        }
    }
}
