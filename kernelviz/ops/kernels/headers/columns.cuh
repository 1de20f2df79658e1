// Rows that stream through blocks that stay on their columns: each thread has the same words of every row that its cluster takes, so
// a weight beside them is loaded once and stays in registers. Rows wait in STAGES of shared memory, each word in a place of the thread
// that asked for it (cp.async, 16 bytes), so that no thread waits for another but for the row's total; a place is asked for again as
// soon as its word was used. Totals take one exchange a row, begun and ended apart: while row i + 1 is exchanged, row i is written and
// row i + 2 is summed. Parts of a total come by st.async and are counted by a barrier in shared memory: a barrier of the cluster
// with release would wait until the last row's stores have come to memory.
//
//     Columns<T, LANES, WORDS, CLUSTER, STAGES, FULL, V> columns(x, m, n, claims);
//     columns.start();  columns.send(0, total of stage 0 in this warp);
//     for (int turn = 0, stage = 0; columns.row(turn) < m; ++turn, stage = columns.after(stage)) {
//         columns.arrived<STAGES - 2>();  ahead = total of stage after(stage);
//         parts = columns.receive(turn);  …  columns.send(turn + 1, ahead);
//         columns.take(stage, columns.row(turn + STAGES), words);  …
//     }
//     columns.finish(turn);
// Launched with a multiple of CLUSTER blocks that are all resident, LANES threads each, and LANES * WORDS * STAGES * 16 bytes of dynamic
// shared memory. Rows of n <= LANES * WORDS * CLUSTER * WIDTH elements, a multiple of WIDTH; FULL where it is just that.
#pragma once
#include "rows.cuh"

template <typename T, int LANES, int WORDS, int CLUSTER, int STAGES, bool FULL, typename V> struct Columns {
    static constexpr int WIDTH = Word<T>::WIDTH;
    static constexpr int WARPS = LANES / 32, PARTS = WARPS * CLUSTER;
    static constexpr int IDS = 16;
    static_assert(sizeof(V) == 8, "one store each");
    static_assert(LANES % 32 == 0 && STAGES >= 3 && STAGES + 4 <= IDS, "rows are known STAGES turns ahead");

    const T* x;
    long long m;
    int n, rank, words, team, teams;
    int* claims;
    Word<T>* places;
    V* slots;                 // [3][PARTS]: two by turns, one for an exchange apart
    unsigned long long* bars;  // of each set
    long long* ids;
    int claimed, apart = 0;

    __device__ __forceinline__ Columns(const T* x_, long long m_, int n_, int* claims_) : x(x_), m(m_), n(n_), claims(claims_) {
        extern __shared__ __align__(16) unsigned char columns_memory[];
        __shared__ V slots_memory[3 * PARTS];
        __shared__ long long ids_memory[IDS];
        __shared__ unsigned long long bars_memory[3];
        slots = slots_memory;
        bars = bars_memory;
        ids = ids_memory;
        rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0;
        team = blockIdx.x / CLUSTER;
        teams = gridDim.x / CLUSTER;
        words = n / WIDTH;
        places = reinterpret_cast<Word<T>*>(columns_memory) + threadIdx.x;
        if (threadIdx.x == 0) {
#pragma unroll
            for (int i = 0; i < 3; ++i) {
                asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(local(bars + i)), "r"(CLUSTER > 1 ? 1 : WARPS) : "memory");
            }
            if (CLUSTER > 1) {
                asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
            }
        }
        __syncwarp();
        // The other blocks must have begun before anything is written into their shared memory; waited for in `start`.
        if (CLUSTER > 1) {
            asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
        }
    }

    // The k-th word of this thread in a row, and whether there is one.
    __device__ __forceinline__ int index(int k) const { return (rank * WORDS + k) * LANES + (int)threadIdx.x; }
    __device__ __forceinline__ bool has(int k) const { return FULL || index(k) < words; }
    __device__ __forceinline__ long long first(long long row) const { return row * n + (long long)index(0) * WIDTH; }
    static __device__ __forceinline__ int after(int stage) { return stage == STAGES - 1 ? 0 : stage + 1; }

    __device__ __forceinline__ Word<T>* place(int stage, int k) const { return places + (stage * WORDS + k) * LANES; }
    // 0 where this thread has no such word.
    __device__ __forceinline__ Word<T> word(int stage, int k) const { return load_word(place(stage, k)); }
    // Of a vector of n elements, what lies beside the k-th word.
    __device__ __forceinline__ Word<T> beside(const T* v, int k) const {
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (has(k)) {
            bits = reinterpret_cast<const uint4*>(v)[index(k)];
        }
        return *reinterpret_cast<const Word<T>*>(&bits);
    }

    __device__ __forceinline__ void ask(int stage, int k, long long row) const {
        if (row < m && has(k)) {
            const unsigned to = (unsigned)__cvta_generic_to_shared(place(stage, k));
            const T* from = x + first(row) + k * (LANES * WIDTH);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
        }
    }
    // The words of a row for the last time: in their places the next row's are asked for.
    __device__ __forceinline__ void take(int stage, long long next, Word<T> (&w)[WORDS]) const {
#pragma unroll
        for (int k = 0; k < WORDS; ++k) {
            *reinterpret_cast<uint4*>(&w[k]) = *reinterpret_cast<const uint4*>(place(stage, k));
        }
#pragma unroll
        for (int k = 0; k < WORDS; ++k) {
            ask(stage, k, next);
        }
        close();
    }
    // A row's words were all asked for.
    __device__ __forceinline__ void close() const { asm volatile("cp.async.commit_group;" ::: "memory"); }
    // Of the rows asked for, all but the last LEFT are there.
    template <int LEFT> __device__ __forceinline__ void arrived() const {
        asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
    }

    // The row of a turn, m or more where there is none; known STAGES turns before.
    __device__ __forceinline__ long long row(int turn) const { return turn < STAGES ? team + (long long)turn * teams : ids[turn % IDS]; }

    __device__ __forceinline__ void start() {
#pragma unroll
        for (int s = 0; s < STAGES; ++s) {
#pragma unroll
            for (int k = 0; k < WORDS; ++k) {
                if (!has(k)) {
                    *reinterpret_cast<uint4*>(place(s, k)) = make_uint4(0, 0, 0, 0);
                }
                ask(s, k, row(s));
            }
            close();
        }
        claim();
        if (CLUSTER > 1) {
            asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
        } else {
            __syncthreads();
        }
        arrived<STAGES - 1>();
    }

    // A warp's part of the total of a turn's row (the same in all its lanes) to every block, and which row comes STAGES turns later.
    __device__ __forceinline__ void send(int turn, V v) {
        const long long found = (long long)STAGES * teams + claimed;
        if (CLUSTER == 1 && leads()) {
            ids[(turn + STAGES) % IDS] = found;  // before its warp arrives
        }
        deliver(turn & 1, v, PARTS * 8 + 8);
        if (CLUSTER > 1 && leads()) {
#pragma unroll
            for (int i = 0; i < CLUSTER; ++i) {
                give(ids + (turn + STAGES) % IDS, i, found, bars + (turn & 1));
            }
        }
        // Asked for a turn before it is needed.
        claim();
    }
    // Ends the exchange that `send` began: PARTS parts, which every block sees in the same order.
    __device__ __forceinline__ const V* receive(int turn) const {
        await(turn & 1, turn / 2 & 1);
        return slots + (turn & 1) * PARTS;
    }
    // An exchange at once, between `receive` and `send`.
    __device__ __forceinline__ const V* exchange(V v) {
        deliver(2, v, PARTS * 8);
        await(2, apart);
        apart ^= 1;
        return slots + 2 * PARTS;
    }

    // The exchange of the row that is not there any more; then the last one out leaves the counters as they were found.
    __device__ __forceinline__ void finish(int turn) const {
        receive(turn);
        arrived<0>();
        if (leads()) {
            __threadfence();
            if (atomicAdd(claims + 1, 1) == teams - 1) {
                claims[0] = 0;
                claims[1] = 0;
            }
        }
    }

private:
    __device__ __forceinline__ bool leads() const { return rank == 0 && threadIdx.x == 0; }
    __device__ __forceinline__ void claim() {
        if (leads()) {
            claimed = atomicAdd(claims, 1);
        }
    }
    static __device__ __forceinline__ unsigned local(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
    static __device__ __forceinline__ unsigned remote(const void* p, unsigned block) {
        unsigned found;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(local(p)), "r"(block));
        return found;
    }
    // 8 bytes to another block, where the barrier counts them.
    template <typename U> static __device__ __forceinline__ void give(U* to, unsigned block, U v, unsigned long long* bar) {
        static_assert(sizeof(U) == 8);
        union {
            U whole;
            unsigned long long bits;
        } sent;
        sent.whole = v;
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(remote(to, block)),
                     "l"(sent.bits), "r"(remote(bar, block))
                     : "memory");
    }
    __device__ __forceinline__ void deliver(int set, V v, int bytes) const {
        if (CLUSTER > 1 && threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(local(bars + set)), "r"(bytes) : "memory");
        }
        const unsigned in_warp = threadIdx.x % 32;
        // Behind the reads of all lanes: a block that has all parts may write over those of the last turn.
        __syncwarp();
        if (CLUSTER == 1) {
            // st.async is no instruction of a launch without clusters.
            if (in_warp == 0) {
                slots[set * PARTS + threadIdx.x / 32] = v;
                asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(local(bars + set)) : "memory");
            }
        } else if (in_warp < CLUSTER) {
            give(slots + set * PARTS + rank * WARPS + threadIdx.x / 32, in_warp, v, bars + set);
        }
    }
    __device__ __forceinline__ void await(int set, int parity) const {
        asm volatile(
            "{\n\t"
            ".reg .pred there;\n\t"
            "AGAIN:\n\t"
            "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n\t"
            "@!there bra AGAIN;\n\t"
            "}" ::"r"(local(bars + set)),
            "r"(parity)
            : "memory");
    }
};

// A word that stays in registers, as if it had just come: else the compiler widens it once, before the first row, and keeps twice the
// registers, or spills them.
template <typename T> __device__ __forceinline__ const Word<T>& as_it_came(Word<T>& w) {
    uint4& bits = *reinterpret_cast<uint4*>(&w);
    asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
    return w;
}

// All parts of a total; every lane of every block gets the same.
template <int PARTS, typename V, typename Combine>
__device__ __forceinline__ V combined(const V* parts, Combine combine, V identity) {
    constexpr int LANES = PARTS > 16 ? 32 : PARTS > 8 ? 16 : PARTS > 4 ? 8 : PARTS > 2 ? 4 : PARTS;
    V found = identity;
#pragma unroll
    for (int i = 0; i < (PARTS + LANES - 1) / LANES; ++i) {
        const int at = i * LANES + threadIdx.x % LANES;
        found = combine(found, at < PARTS ? parts[at] : identity);
    }
    return warp_reduce<LANES>(found, combine);
}
