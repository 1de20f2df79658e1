// Persistent blocks whose threads each own columns: a thread has the same vectors of every row that its cluster processes, so the vectors
// of a weight in these columns are loaded once and stay in registers. Rows wait in STAGES of shared memory. Each vector is in the slot of
// the thread that prefetched it (cp.async, 16 bytes), so that a thread waits for others only at the row's total; a slot is refilled as soon
// as its vector was used. Each row needs one exchange of totals, which is begun and ended separately: while the total of row i + 1 is
// exchanged, row i is written and row i + 2 is summed. Parts of a total arrive by st.async and are counted by an mbarrier in shared memory,
// because a cluster barrier with release would wait until the last row's stores have reached memory.
//
//     PersistentColumns<T, LANES, VECTORS, CLUSTER, STAGES, FULL, V> columns(x, m, n, tile_counter);
//     columns.start();  columns.send(0, total of stage 0 in this warp);
//     for (int iteration = 0, stage = 0; columns.row(iteration) < m; ++iteration, stage = columns.next_stage(stage)) {
//         columns.wait_until_arrived<STAGES - 2>();  ahead = total of stage next_stage(stage);
//         parts = columns.receive(iteration);  …  columns.send(iteration + 1, ahead);
//         columns.consume(stage, columns.row(iteration + STAGES), vectors);  …
//     }
//     columns.finish(iteration);
// The launch has a multiple of CLUSTER blocks that are all resident, LANES threads each, and LANES * VECTORS * STAGES * 16 bytes of dynamic
// shared memory. Rows have n <= LANES * VECTORS * CLUSTER * WIDTH elements, a multiple of WIDTH; FULL where it is exactly that.
#pragma once
#include "rows.cuh"

template <typename T, int LANES, int VECTORS, int CLUSTER, int STAGES, bool FULL, typename V> struct PersistentColumns {
    static constexpr int WIDTH = Vec16<T>::WIDTH;
    static constexpr int WARPS = LANES / 32, PARTS = WARPS * CLUSTER;
    static constexpr int IDS = 16;
    static_assert(sizeof(V) == 8, "one store each");
    static_assert(LANES % 32 == 0 && STAGES >= 3 && STAGES + 4 <= IDS, "rows are known STAGES iterations ahead");

    const T* x;
    long long m;
    int n, rank, vectors, cluster_id, clusters;
    int* tile_counter;
    Vec16<T>* staged;
    V* parts_of_set;                // [3][PARTS]: two sets that alternate, and one for `exchange`
    unsigned long long* mbarriers;  // one a set
    long long* ids;
    int next_tile, exchange_parity = 0;

    __device__ __forceinline__ PersistentColumns(const T* x_, long long m_, int n_, int* tile_counter_)
        : x(x_), m(m_), n(n_), tile_counter(tile_counter_) {
        extern __shared__ __align__(16) unsigned char columns_memory[];
        __shared__ V parts_memory[3 * PARTS];
        __shared__ long long ids_memory[IDS];
        __shared__ unsigned long long mbarriers_memory[3];
        parts_of_set = parts_memory;
        mbarriers = mbarriers_memory;
        ids = ids_memory;
        rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0;
        cluster_id = blockIdx.x / CLUSTER;
        clusters = gridDim.x / CLUSTER;
        vectors = n / WIDTH;
        staged = reinterpret_cast<Vec16<T>*>(columns_memory) + threadIdx.x;
        if (threadIdx.x == 0) {
#pragma unroll
            for (int i = 0; i < 3; ++i) {
                asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(local(mbarriers + i)), "r"(CLUSTER > 1 ? 1 : WARPS) : "memory");
            }
            if (CLUSTER > 1) {
                asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            }
        }
        __syncwarp();
        // The other blocks must have started before anything is written into their shared memory; `start` waits for that.
        if (CLUSTER > 1) {
            asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
        }
    }

    // Number of this thread's k-th vector in a row, and whether the row has it.
    __device__ __forceinline__ int index(int k) const { return (rank * VECTORS + k) * LANES + (int)threadIdx.x; }
    __device__ __forceinline__ bool has(int k) const { return FULL || index(k) < vectors; }
    __device__ __forceinline__ long long first(long long row) const { return row * n + (long long)index(0) * WIDTH; }
    static __device__ __forceinline__ int next_stage(int stage) { return stage == STAGES - 1 ? 0 : stage + 1; }

    __device__ __forceinline__ Vec16<T>* slot(int stage, int k) const { return staged + (stage * VECTORS + k) * LANES; }
    // This thread's k-th vector of a stage, 0 where it has none.
    __device__ __forceinline__ Vec16<T> vector(int stage, int k) const { return load_vec16(slot(stage, k)); }
    // Load from an array of n elements (a weight) the vector with the columns of this thread's k-th vector.
    __device__ __forceinline__ Vec16<T> load_beside(const T* v, int k) const {
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (has(k)) {
            bits = reinterpret_cast<const uint4*>(v)[index(k)];
        }
        return *reinterpret_cast<const Vec16<T>*>(&bits);
    }

    __device__ __forceinline__ void prefetch(int stage, int k, long long row) const {
        if (row < m && has(k)) {
            const unsigned to = (unsigned)__cvta_generic_to_shared(slot(stage, k));
            const T* from = x + first(row) + k * (LANES * WIDTH);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
        }
    }
    // Read the vectors of a row for the last time, and prefetch those of row `next` into their slots.
    __device__ __forceinline__ void consume(int stage, long long next, Vec16<T> (&w)[VECTORS]) const {
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            *reinterpret_cast<uint4*>(&w[k]) = *reinterpret_cast<const uint4*>(slot(stage, k));
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            prefetch(stage, k, next);
        }
        commit_group();
    }
    // The loads of all of a row's vectors were issued.
    __device__ __forceinline__ void commit_group() const { asm volatile("cp.async.commit_group;" ::: "memory"); }
    // Wait until all prefetched rows but the last LEFT have arrived.
    template <int LEFT> __device__ __forceinline__ void wait_until_arrived() const {
        asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
    }

    // The row of an iteration, or a number of at least m if there is none. It is known STAGES iterations ahead.
    __device__ __forceinline__ long long row(int iteration) const {
        return iteration < STAGES ? cluster_id + (long long)iteration * clusters : ids[iteration % IDS];
    }

    __device__ __forceinline__ void start() {
#pragma unroll
        for (int s = 0; s < STAGES; ++s) {
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                if (!has(k)) {
                    *reinterpret_cast<uint4*>(slot(s, k)) = make_uint4(0, 0, 0, 0);
                }
                prefetch(s, k, row(s));
            }
            commit_group();
        }
        fetch_tile();
        if (CLUSTER > 1) {
            asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
        } else {
            __syncthreads();
        }
        wait_until_arrived<STAGES - 1>();
    }

    // Send a warp's part of the total of an iteration's row (the same in all its lanes) to every block, and the number of the row that
    // comes STAGES iterations later.
    __device__ __forceinline__ void send(int iteration, V v) {
        const long long later_row = (long long)STAGES * clusters + next_tile;
        if (CLUSTER == 1 && is_leader()) {
            ids[(iteration + STAGES) % IDS] = later_row;  // before its warp arrives
        }
        publish(iteration & 1, v, PARTS * 8 + 8);
        if (CLUSTER > 1 && is_leader()) {
#pragma unroll
            for (int i = 0; i < CLUSTER; ++i) {
                send_to(ids + (iteration + STAGES) % IDS, i, later_row, mbarriers + (iteration & 1));
            }
        }
        // Fetched an iteration before it is needed.
        fetch_tile();
    }
    // End the exchange that `send` began: PARTS parts, in the same order in every block.
    __device__ __forceinline__ const V* receive(int iteration) const {
        wait_for(iteration & 1, iteration / 2 & 1);
        return parts_of_set + (iteration & 1) * PARTS;
    }
    // A complete exchange, between `receive` and `send`.
    __device__ __forceinline__ const V* exchange(V v) {
        publish(2, v, PARTS * 8);
        wait_for(2, exchange_parity);
        exchange_parity ^= 1;
        return parts_of_set + 2 * PARTS;
    }

    // End the exchange of the row that does not exist; then the last cluster resets the counters for the next launch.
    __device__ __forceinline__ void finish(int iteration) const {
        receive(iteration);
        wait_until_arrived<0>();
        if (is_leader()) {
            __threadfence();
            if (atomicAdd(tile_counter + 1, 1) == clusters - 1) {
                tile_counter[0] = 0;
                tile_counter[1] = 0;
            }
        }
    }

private:
    __device__ __forceinline__ bool is_leader() const { return rank == 0 && threadIdx.x == 0; }
    __device__ __forceinline__ void fetch_tile() {
        if (is_leader()) {
            next_tile = atomicAdd(tile_counter, 1);
        }
    }
    static __device__ __forceinline__ unsigned local(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
    static __device__ __forceinline__ unsigned remote(const void* p, unsigned block) {
        unsigned address;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(local(p)), "r"(block));
        return address;
    }
    // Send 8 bytes to another block, whose mbarrier counts them.
    template <typename U> static __device__ __forceinline__ void send_to(U* to, unsigned block, U v, unsigned long long* mbarrier) {
        static_assert(sizeof(U) == 8);
        union {
            U whole;
            unsigned long long bits;
        } sent;
        sent.whole = v;
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(remote(to, block)),
                     "l"(sent.bits), "r"(remote(mbarrier, block))
                     : "memory");
    }
    __device__ __forceinline__ void publish(int set, V v, int bytes) const {
        if (CLUSTER > 1 && threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(local(mbarriers + set)), "r"(bytes) : "memory");
        }
        const unsigned in_warp = threadIdx.x % 32;
        // After the reads of all lanes: a block that has all parts may overwrite those of the last iteration.
        __syncwarp();
        if (CLUSTER == 1) {
            // A launch without clusters may not use st.async.
            if (in_warp == 0) {
                parts_of_set[set * PARTS + threadIdx.x / 32] = v;
                asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(local(mbarriers + set)) : "memory");
            }
        } else if (in_warp < CLUSTER) {
            send_to(parts_of_set + set * PARTS + rank * WARPS + threadIdx.x / 32, in_warp, v, mbarriers + set);
        }
    }
    __device__ __forceinline__ void wait_for(int set, int parity) const {
        asm volatile(
            "{\n\t"
            ".reg .pred ready;\n\t"
            "AGAIN:\n\t"
            "mbarrier.try_wait.parity.shared::cta.b64 ready, [%0], %1;\n\t"
            "@!ready bra AGAIN;\n\t"
            "}" ::"r"(local(mbarriers + set)),
            "r"(parity)
            : "memory");
    }
};

// Combine all parts of a total; every lane of every block gets the same result.
template <int PARTS, typename V, typename Combine>
__device__ __forceinline__ V combine_parts(const V* parts, Combine combine, V identity) {
    constexpr int LANES = PARTS > 16 ? 32 : PARTS > 8 ? 16 : PARTS > 4 ? 8 : PARTS > 2 ? 4 : PARTS;
    V result = identity;
#pragma unroll
    for (int i = 0; i < (PARTS + LANES - 1) / LANES; ++i) {
        const int at = i * LANES + threadIdx.x % LANES;
        result = combine(result, at < PARTS ? parts[at] : identity);
    }
    return warp_reduce<LANES>(result, combine);
}
