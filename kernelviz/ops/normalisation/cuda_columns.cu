// `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of long rows by clusters that stay on their columns. A thread has the same
// vectors of every row that its cluster takes, so weight and bias are read once and kept in registers. Rows come by cp.async, each vector
// to the thread that asked for it, into COLUMNS_STAGES places: one row is written out, the next one is added up, the others are on
// their way. Between adding up and writing out lies one exchange through distributed shared memory: while the sums of row i are under
// way the block writes row i - 1 out and adds up row i + 1. The sums are sent by st.async, which counts them in at the receiver's
// mbarrier. A cluster barrier would do, but its release is a MEMBAR.GPU: it waits until memory has taken every store of y so far.
// For starts on 16 bytes only: else the columns beside a vector move from row to row.
#include "conversions.cuh"
#include "rows.cuh"

using T = ELEMENT;
using W = Vec16<T>;
constexpr int WIDTH = W::WIDTH;
constexpr int LANES = ROW_LANES, VECTORS = ROW_VECTORS, CLUSTER = ROW_CLUSTER;
constexpr int STAGES = COLUMNS_STAGES;
constexpr int OTHERS = STAGES - 1;  // places of r: free as soon as it is added to x
constexpr int WARPS = LANES / 32, PARTS = WARPS * CLUSTER, EACH = (PARTS + 31) / 32;
constexpr bool FULL = COLUMNS_FULL;  // every vector of every thread is the row's
// Weight and bias as fp32 numbers, where registers suffice: a quarter of the instructions of a bf16 vector is making them of halves.
constexpr bool WIDE = VECTORS * WIDTH * (CENTRED ? 2 : 1) * ROW_BLOCKS <= 64;
// All vectors of a row are read from shared memory ahead of the first store, where registers suffice.
constexpr bool EARLY = FULL && VECTORS * ROW_BLOCKS <= 4;
constexpr int IDS = 16;
static_assert(STAGES >= 2 && STAGES <= 14, "numbers of rows are kept for 16 turns");

// Of a warp's part of a row: Σ (x - mean)², or Σ x² with no mean. Parts are combined by Chan's formula, whose first term is exact
// where E[x²] - E[x]² would lose the variance of rows whose mean is large.
struct alignas(8) Sums {
    float mean, squares;
};

__device__ __forceinline__ void ask(W* place, const W* from) {
    // With a prefetch of 128 bytes rows of 131,072 in bf16 take 76.4 us, of 256 bytes 77.2, without 79.0.
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(place)), "l"(from) : "memory");
}
__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void wait_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

__device__ __forceinline__ unsigned shared_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }
// The same place in block `rank` of this cluster.
__device__ __forceinline__ unsigned in_block(unsigned local, int rank) {
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(rank));
    return remote;
}
__device__ __forceinline__ void expect(unsigned long long* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void await(unsigned long long* barrier, int parity) {
    asm volatile(
        "{\n\t.reg .pred done;\n"
        "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// A weight's vector, kept through all rows.
template <bool AS_FLOATS> struct Kept {
    float wide[WIDTH];
    __device__ __forceinline__ void load(const W* from) {
        widen(load_vec16(from), wide);
        if (FULL && sizeof(T) < 4) {
            // Through a shuffle that changes nothing: else the compiler keeps the halves, and converts them anew for every row.
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                wide[e] = __shfl_sync(0xffffffffu, wide[e], threadIdx.x % 32);
            }
        }
    }
    __device__ __forceinline__ void get(float (&out)[WIDTH]) {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            out[e] = wide[e];
        }
    }
};
template <> struct Kept<false> {
    uint4 bits;
    __device__ __forceinline__ void load(const W* from) { bits = *reinterpret_cast<const uint4*>(from); }
    __device__ __forceinline__ void get(float (&out)[WIDTH]) {
        // As if not known: else the compiler converts it ahead of the loop, into twice the registers.
        asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
        W vector;
        *reinterpret_cast<uint4*>(&vector) = bits;
        widen(vector, out);
    }
};

extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_BLOCKS) normalise_columns(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, long long m, int n, float eps, int* tile_counter) {
    extern __shared__ __align__(16) unsigned char memory[];
    // Two by turns: a block that is ahead by one row writes into the one that everybody has read.
    __shared__ Sums mail[2][PARTS];
    // The sums of as many warps as there are, and the number of a row, have come.
    __shared__ unsigned long long came[2];
    constexpr int BYTES = PARTS * sizeof(Sums) + sizeof(int);
    // Of the i-th row of this cluster, at i % IDS.
    __shared__ int ids[IDS];
    __shared__ float counts[FULL ? 1 : PARTS];
    const int lane = threadIdx.x, warp = lane / 32, in_warp = lane % 32;
    const int rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0;
    const int teams = gridDim.x / CLUSTER, team = blockIdx.x / CLUSTER;
    const int rows = (int)m, vectors = n / WIDTH;
    const int first = rank * VECTORS * LANES + lane;
    W* places = reinterpret_cast<W*>(memory) + lane;
    W* others = places + STAGES * VECTORS * LANES;

    auto has = [&](int k) { return FULL || first + k * LANES < vectors; };
    auto at = [&](const T* matrix, int row) { return reinterpret_cast<const W*>(matrix) + (long long)row * vectors + first; };
    auto fetch = [&](const T* matrix, int row, W* place) {
        if (row < rows) {
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                if (has(k)) {
                    ask(place + k * LANES, at(matrix, row) + k * LANES);
                }
            }
        }
    };
    // Elements of the row that a warp of the cluster has; kept in shared memory, where they differ.
    auto count_of = [&](int part) {
        int found = 0;
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            found += min(32, max(0, vectors - ((part / WARPS * VECTORS + k) * LANES + part % WARPS * 32)));
        }
        return (float)(found * WIDTH);
    };

    if (!FULL && lane < PARTS) {
        counts[lane] = count_of(lane);
    }
    // Rows are claimed STAGES + 1 turns ahead, the first ones are known.
    if (lane <= STAGES) {
        ids[lane] = team + lane * teams;
    }
    if (lane == 0) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(came + i)), "r"(CLUSTER > 1 ? 1 : WARPS)
                         : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        if (CLUSTER > 1) {
            expect(came, BYTES);
            expect(came + 1, BYTES);
        }
    }
    // Waited for below: all blocks have begun, and know the first rows.
    if (CLUSTER > 1) {
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    } else {
        __syncthreads();
    }
    int claimed = 0;
    auto claim = [&] {
        if (rank == 0 && lane == 0) {
            // Of an addition the compiler would make one for the whole warp, and wait for it at once.
            asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], 0x7fffffff;" : "=r"(claimed) : "l"(tile_counter) : "memory");
        }
    };
    claim();
#pragma unroll
    for (int p = 0; p < STAGES - 1; ++p) {
        fetch(x, team + p * teams, places + p * VECTORS * LANES);
        if (ADDS) {
            fetch(r, team + p * teams, others + p * VECTORS * LANES);
        }
        close_group();
    }
    fetch(x, team + (STAGES - 1) * teams, places + (STAGES - 1) * VECTORS * LANES);

    Kept<WIDE> g[VECTORS], c[CENTRED ? VECTORS : 1];
    float mine_count = 0.0f;
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        if (has(k)) {
            mine_count += WIDTH;
            g[k].load(reinterpret_cast<const W*>(w) + first + k * LANES);
            if (CENTRED) {
                c[CENTRED ? k : 0].load(reinterpret_cast<const W*>(b) + first + k * LANES);
            }
        }
    }
    // What has no elements has the mean 0.
    const float of_n = 1.0f / n;
    const float warp_count = count_of(rank * WARPS + warp);
    const float of_mine = mine_count > 0 ? 1 / mine_count : 0.0f, of_warp = warp_count > 0 ? 1 / warp_count : 0.0f;
    if (CLUSTER > 1) {
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    }

    // A row that has arrived, added up over the warp. ADDS: s is stored and takes the place of x, the place of r asks for row `later`.
    auto sums_of = [&](int row, W* place, W* other, int later) {
        float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        W v[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            if (has(k)) {
                v[k] = place[k * LANES];
                float a[WIDTH];
                widen(v[k], a);
                if (ADDS) {
                    float d[WIDTH];
                    widen(other[k * LANES], d);
#pragma unroll
                    for (int e = 0; e < WIDTH; ++e) {
                        a[e] += d[e];
                    }
                    // The sum as it is stored: whoever reads s gets the row that was normalised.
                    v[k] = narrow<T>(a);
                    widen(v[k], a);
                    store_vec16(const_cast<W*>(at(s, row)) + k * LANES, v[k]);
                    place[k * LANES] = v[k];
                    if (later < rows) {
                        ask(other + k * LANES, at(r, later) + k * LANES);
                    }
                }
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    part[e % 4] = CENTRED ? part[e % 4] + a[e] : fmaf(a[e], a[e], part[e % 4]);
                }
            }
        }
        const float total = (part[0] + part[1]) + (part[2] + part[3]);
        if (!CENTRED) {
            return Sums{0.0f, warp_reduce<32>(total, Add{})};
        }
        const float mean = total * of_mine;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            part[e] = 0.0f;
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            if (has(k)) {
                float a[WIDTH];
                widen(v[k], a);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    part[e % 4] = fmaf(a[e] - mean, a[e] - mean, part[e % 4]);
                }
            }
        }
        const float warp_mean = warp_reduce<32>(total, Add{}) * of_warp, away = mean - warp_mean;
        const float squares = (part[0] + part[1]) + (part[2] + part[3]);
        return Sums{warp_mean, warp_reduce<32>(fmaf(away * mine_count, away, squares), Add{})};
    };
    // The warp's sums of the cluster's row `turn`, to every block; with them the number of a row to come.
    auto send = [&](Sums mine, int turn) {
        Sums* slot = &mail[turn & 1][rank * WARPS + warp];
        unsigned long long* barrier = came + (turn & 1);
        int* id = ids + (turn + STAGES + 1) % IDS;
        if (CLUSTER == 1) {
            if (in_warp == 0) {
                *slot = mine;
                if (warp == 0) {
                    *id = claimed + (STAGES + 1) * teams;
                }
                asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
            }
            return;
        }
        int found = 0;
        if (rank == 0 && warp == 0) {
            found = __shfl_sync(0xffffffffu, claimed, 0) + (STAGES + 1) * teams;
        }
        if (in_warp < CLUSTER) {
            const unsigned counted = in_block(shared_address(barrier), in_warp);
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(
                             in_block(shared_address(slot), in_warp)),
                         "r"(__float_as_int(mine.mean)), "r"(__float_as_int(mine.squares)), "r"(counted)
                         : "memory");
            if (rank == 0 && warp == 0) {
                asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                                 in_block(shared_address(id), in_warp)),
                             "r"(found), "r"(counted)
                             : "memory");
            }
        }
    };
    // All sums of a row have come.
    auto arrived = [&](int turn) { await(came + (turn & 1), turn >> 1 & 1); };

    int now = team, stage = 0, ahead = 1, other = 0;
    wait_groups<STAGES - 2>();
    send(sums_of(now, places, others, team + (STAGES - 1) * teams), 0);
    claim();
    close_group();
    int turn = 0;
    for (; now < rows; ++turn) {
        const int next = ids[(turn + 1) % IDS], later = ids[(turn + STAGES) % IDS];
        other = other + 1 == OTHERS ? 0 : other + 1;
        wait_groups<STAGES - 2>();
        Sums mine = {0.0f, 0.0f};
        if (next < rows) {
            mine = sums_of(next, places + ahead * (VECTORS * LANES), others + other * (VECTORS * LANES), later);
        }
        arrived(turn);
        Sums got[EACH];
        float count[EACH];
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const int part = i * 32 + in_warp;
            got[i] = part < PARTS ? mail[turn & 1][part] : Sums{0.0f, 0.0f};
            count[i] = part >= PARTS ? 0.0f : FULL ? VECTORS * 32.0f * WIDTH : counts[FULL ? 0 : part];
        }
        // Who has all sums of a row knows by them that every warp has read the mail of the row before: all of its lanes.
        __syncwarp();
        send(mine, turn + 1);
        if (CLUSTER > 1 && lane == 0) {
            expect(came + (turn & 1), BYTES);
        }
        claim();

        float mean = 0.0f, squares = 0.0f;
        if (CENTRED) {
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                mean = fmaf(got[i].mean, count[i], mean);
            }
            mean = warp_reduce<32>(mean, Add{}) * of_n;
        }
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const float away = got[i].mean - mean;
            squares += CENTRED ? fmaf(away * count[i], away, got[i].squares) : got[i].squares;
        }
        const float scale = rsqrtf(fmaf(warp_reduce<32>(squares, Add{}), of_n, eps)), shift = -mean * scale;
        W* place = places + stage * (VECTORS * LANES);
        W* to = const_cast<W*>(at(y, now));
        W v[EARLY ? VECTORS : 1];
        if (EARLY) {
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                if (has(k)) {
                    v[EARLY ? k : 0] = place[k * LANES];
                }
            }
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            if (has(k)) {
                float a[WIDTH], weight[WIDTH], bias[WIDTH];
                widen(EARLY ? v[EARLY ? k : 0] : place[k * LANES], a);
                g[k].get(weight);
                if (CENTRED) {
                    c[CENTRED ? k : 0].get(bias);
                }
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    a[e] = CENTRED ? fmaf(fmaf(a[e], scale, shift), weight[e], bias[e]) : a[e] * scale * weight[e];
                }
                store_vec16(to + k * LANES, narrow<T>(a));
                if (later < rows) {
                    ask(place + k * LANES, at(x, later) + k * LANES);
                }
            }
        }
        close_group();
        now = next;
        stage = ahead;
        ahead = ahead + 1 == STAGES ? 0 : ahead + 1;
    }
    // Nobody leaves while another may still write into its mail.
    arrived(turn);
    // The last one out leaves the counters as they were found.
    if (rank == 0 && lane == 0) {
        __threadfence();
        if (atomicAdd(tile_counter + 1, 1) == teams - 1) {
            tile_counter[0] = 0;
            tile_counter[1] = 0;
        }
    }
}
