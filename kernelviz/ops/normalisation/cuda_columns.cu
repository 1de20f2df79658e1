// `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of long rows by persistent clusters with fixed columns. A thread has the same
// vectors of every row of its cluster, so weight and bias are read once and stay in registers. Rows arrive by cp.async, each vector for
// the thread that issued the copy, in COLUMNS_STAGES buffers: one row is stored, the next one is summed, the others are in flight.
// Between summing and storing is one exchange through distributed shared memory: while the sums of row i are in flight, the block stores
// row i - 1 and sums row i + 1. The sums are sent by st.async, which counts their bytes at the receiver's mbarrier. A cluster barrier
// would also work, but its release is a MEMBAR.GPU, which waits until memory has received every store of y so far.
// Only for rows that start on 16 bytes: otherwise the columns of a vector differ from row to row.
#include "conversions.cuh"
#include "rows.cuh"

using T = ELEMENT;
using W = Vec16<T>;
constexpr int WIDTH = W::WIDTH;
constexpr int LANES = ROW_LANES, VECTORS = ROW_VECTORS, CLUSTER = ROW_CLUSTER;
constexpr int STAGES = COLUMNS_STAGES;
constexpr int R_STAGES = STAGES - 1;  // buffers of r, which are free as soon as r is added to x
constexpr int WARPS = LANES / 32, PARTS = WARPS * CLUSTER, EACH = (PARTS + 31) / 32;
constexpr bool FULL = COLUMNS_FULL;  // all vectors of all threads exist
// Weight and bias as fp32 numbers where registers suffice: converting them takes a quarter of the instructions of a bf16 vector.
constexpr bool WIDE = VECTORS * WIDTH * (CENTRED ? 2 : 1) * ROW_BLOCKS <= 64;
// All vectors of a row are read from shared memory before the first store where registers suffice.
constexpr bool EARLY = FULL && VECTORS * ROW_BLOCKS <= 4;
constexpr int IDS = 16;
static_assert(STAGES >= 2 && STAGES <= 14, "row numbers are kept for 16 rows");

// Of a warp's part of a row: Σ (x - mean)², or Σ x² without a mean. Parts are combined by Chan's formula, whose first term is exact
// where E[x²] - E[x]² loses the variance of rows with a large mean.
struct alignas(8) Sums {
    float mean, squares;
};

__device__ __forceinline__ void prefetch(W* buffer, const W* from) {
    // With an L2 prefetch of 128 bytes, rows of 131,072 in bf16 take 76.4 us; with 256 bytes 77.2, without 79.0.
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(buffer)), "l"(from) : "memory");
}
__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void wait_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

__device__ __forceinline__ unsigned shared_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }
// The same address in block `rank` of this cluster.
__device__ __forceinline__ unsigned in_block(unsigned local, int rank) {
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(rank));
    return remote;
}
__device__ __forceinline__ void expect(unsigned long long* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void wait_for(unsigned long long* barrier, int parity) {
    asm volatile(
        "{\n\t.reg .pred done;\n"
        "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// A vector of the weight, which stays in registers for all rows.
template <bool AS_FLOATS> struct Resident {
    float wide[WIDTH];
    __device__ __forceinline__ void load(const W* from) {
        widen(load_vec16(from), wide);
        if (FULL && sizeof(T) < 4) {
            // A shuffle that changes nothing. Without it the compiler keeps the 16-bit values and converts them again for every row.
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
template <> struct Resident<false> {
    uint4 bits;
    __device__ __forceinline__ void load(const W* from) { bits = *reinterpret_cast<const uint4*>(from); }
    __device__ __forceinline__ void get(float (&out)[WIDTH]) {
        // Opaque to the compiler, which would otherwise convert it before the loop, into twice the registers.
        asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
        W vec;
        *reinterpret_cast<uint4*>(&vec) = bits;
        widen(vec, out);
    }
};

extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_BLOCKS) normalise_columns(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, long long m, int n, float eps, int* tile_counter) {
    extern __shared__ __align__(16) unsigned char memory[];
    // Two alternating sets: a block that is one row ahead writes into the set that all warps have read.
    __shared__ Sums sums[2][PARTS];
    // mbarriers: the sums of all warps and the number of a row have arrived.
    __shared__ unsigned long long arrivals[2];
    constexpr int BYTES = PARTS * sizeof(Sums) + sizeof(int);
    // Number of the i-th row of this cluster, at i % IDS.
    __shared__ int ids[IDS];
    __shared__ float counts[FULL ? 1 : PARTS];
    const int lane = threadIdx.x, warp = lane / 32, in_warp = lane % 32;
    const int rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0;
    const int clusters = gridDim.x / CLUSTER, cluster = blockIdx.x / CLUSTER;
    const int rows = (int)m, vectors = n / WIDTH;
    const int first = rank * VECTORS * LANES + lane;
    W* buffers = reinterpret_cast<W*>(memory) + lane;
    W* r_buffers = buffers + STAGES * VECTORS * LANES;

    auto has = [&](int k) { return FULL || first + k * LANES < vectors; };
    auto at = [&](const T* matrix, int row) { return reinterpret_cast<const W*>(matrix) + (long long)row * vectors + first; };
    auto fetch = [&](const T* matrix, int row, W* buffer) {
        if (row < rows) {
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                if (has(k)) {
                    prefetch(buffer + k * LANES, at(matrix, row) + k * LANES);
                }
            }
        }
    };
    // Elements of the row in a part (a warp of the cluster); stored in shared memory where parts differ.
    auto count_of = [&](int part) {
        int total = 0;
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            total += min(32, max(0, vectors - ((part / WARPS * VECTORS + k) * LANES + part % WARPS * 32)));
        }
        return (float)(total * WIDTH);
    };

    if (!FULL && lane < PARTS) {
        counts[lane] = count_of(lane);
    }
    // Row numbers are taken from the tile counter STAGES + 1 rows ahead; the first ones are fixed.
    if (lane <= STAGES) {
        ids[lane] = cluster + lane * clusters;
    }
    if (lane == 0) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(arrivals + i)), "r"(CLUSTER > 1 ? 1 : WARPS)
                         : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        if (CLUSTER > 1) {
            expect(arrivals, BYTES);
            expect(arrivals + 1, BYTES);
        }
    }
    // All blocks have started and know the first rows; waited for below.
    if (CLUSTER > 1) {
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    } else {
        __syncthreads();
    }
    int counted = 0;
    auto count_tile = [&] {
        if (rank == 0 && lane == 0) {
            // The compiler would turn an addition into one for the whole warp and wait for it immediately.
            asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], 0x7fffffff;" : "=r"(counted) : "l"(tile_counter) : "memory");
        }
    };
    count_tile();
#pragma unroll
    for (int p = 0; p < STAGES - 1; ++p) {
        fetch(x, cluster + p * clusters, buffers + p * VECTORS * LANES);
        if (ADDS) {
            fetch(r, cluster + p * clusters, r_buffers + p * VECTORS * LANES);
        }
        close_group();
    }
    fetch(x, cluster + (STAGES - 1) * clusters, buffers + (STAGES - 1) * VECTORS * LANES);

    Resident<WIDE> g[VECTORS], c[CENTRED ? VECTORS : 1];
    float own_count = 0.0f;
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        if (has(k)) {
            own_count += WIDTH;
            g[k].load(reinterpret_cast<const W*>(w) + first + k * LANES);
            if (CENTRED) {
                c[CENTRED ? k : 0].load(reinterpret_cast<const W*>(b) + first + k * LANES);
            }
        }
    }
    // Threads and warps without elements have the mean 0.
    const float of_n = 1.0f / n;
    const float warp_count = count_of(rank * WARPS + warp);
    const float of_mine = own_count > 0 ? 1 / own_count : 0.0f, of_warp = warp_count > 0 ? 1 / warp_count : 0.0f;
    if (CLUSTER > 1) {
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    }

    // Sums over the warp of a row that has arrived. ADDS: s is stored and replaces x, and row `later` of r is prefetched.
    auto sums_of = [&](int row, W* buffer, W* r_buffer, int later) {
        float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        W v[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            if (has(k)) {
                v[k] = buffer[k * LANES];
                float a[WIDTH];
                widen(v[k], a);
                if (ADDS) {
                    float d[WIDTH];
                    widen(r_buffer[k * LANES], d);
#pragma unroll
                    for (int e = 0; e < WIDTH; ++e) {
                        a[e] += d[e];
                    }
                    // The sum as it is stored, so that s is the row that is normalised.
                    v[k] = narrow<T>(a);
                    widen(v[k], a);
                    store_vec16(const_cast<W*>(at(s, row)) + k * LANES, v[k]);
                    buffer[k * LANES] = v[k];
                    if (later < rows) {
                        prefetch(r_buffer + k * LANES, at(r, later) + k * LANES);
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
        return Sums{warp_mean, warp_reduce<32>(fmaf(away * own_count, away, squares), Add{})};
    };
    // Sends the warp's sums of the cluster's row `step` to every block, together with the number of a later row.
    auto send = [&](Sums mine, int step) {
        Sums* slot = &sums[step & 1][rank * WARPS + warp];
        unsigned long long* barrier = arrivals + (step & 1);
        int* id = ids + (step + STAGES + 1) % IDS;
        if (CLUSTER == 1) {
            if (in_warp == 0) {
                *slot = mine;
                if (warp == 0) {
                    *id = counted + (STAGES + 1) * clusters;
                }
                asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
            }
            return;
        }
        int later = 0;
        if (rank == 0 && warp == 0) {
            later = __shfl_sync(0xffffffffu, counted, 0) + (STAGES + 1) * clusters;
        }
        if (in_warp < CLUSTER) {
            const unsigned remote = in_block(shared_address(barrier), in_warp);
            asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(
                             in_block(shared_address(slot), in_warp)),
                         "r"(__float_as_int(mine.mean)), "r"(__float_as_int(mine.squares)), "r"(remote)
                         : "memory");
            if (rank == 0 && warp == 0) {
                asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                                 in_block(shared_address(id), in_warp)),
                             "r"(later), "r"(remote)
                             : "memory");
            }
        }
    };
    // Waits until all sums of a row have arrived.
    auto wait_for_sums = [&](int step) { wait_for(arrivals + (step & 1), step >> 1 & 1); };

    int current = cluster, stage = 0, ahead = 1, r_stage = 0;
    wait_groups<STAGES - 2>();
    send(sums_of(current, buffers, r_buffers, cluster + (STAGES - 1) * clusters), 0);
    count_tile();
    close_group();
    int step = 0;
    for (; current < rows; ++step) {
        const int next = ids[(step + 1) % IDS], later = ids[(step + STAGES) % IDS];
        r_stage = r_stage + 1 == R_STAGES ? 0 : r_stage + 1;
        wait_groups<STAGES - 2>();
        Sums mine = {0.0f, 0.0f};
        if (next < rows) {
            mine = sums_of(next, buffers + ahead * (VECTORS * LANES), r_buffers + r_stage * (VECTORS * LANES), later);
        }
        wait_for_sums(step);
        Sums got[EACH];
        float count[EACH];
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const int part = i * 32 + in_warp;
            got[i] = part < PARTS ? sums[step & 1][part] : Sums{0.0f, 0.0f};
            count[i] = part >= PARTS ? 0.0f : FULL ? VECTORS * 32.0f * WIDTH : counts[FULL ? 0 : part];
        }
        // All sums of this row have arrived, so every warp (all of its lanes) has read the sums of the row before.
        __syncwarp();
        send(mine, step + 1);
        if (CLUSTER > 1 && lane == 0) {
            expect(arrivals + (step & 1), BYTES);
        }
        count_tile();

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
        W* buffer = buffers + stage * (VECTORS * LANES);
        W* to = const_cast<W*>(at(y, current));
        W v[EARLY ? VECTORS : 1];
        if (EARLY) {
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                if (has(k)) {
                    v[EARLY ? k : 0] = buffer[k * LANES];
                }
            }
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            if (has(k)) {
                float a[WIDTH], weight[WIDTH], bias[WIDTH];
                widen(EARLY ? v[EARLY ? k : 0] : buffer[k * LANES], a);
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
                    prefetch(buffer + k * LANES, at(x, later) + k * LANES);
                }
            }
        }
        close_group();
        current = next;
        stage = ahead;
        ahead = ahead + 1 == STAGES ? 0 : ahead + 1;
    }
    // A block must not end while another may still write into its sums.
    wait_for_sums(step);
    // The last cluster resets the counters.
    if (rank == 0 && lane == 0) {
        __threadfence();
        if (atomicAdd(tile_counter + 1, 1) == clusters - 1) {
            tile_counter[0] = 0;
            tile_counter[1] = 0;
        }
    }
}
