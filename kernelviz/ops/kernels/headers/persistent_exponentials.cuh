// Exponentials of long rows by persistent clusters: a thread has the same columns of every row that its cluster takes. For each of its
// vectors it has two slots, one of the row that is written and one of the row that is summed meanwhile, in shared memory and (the
// first IN_REGISTERS vectors) in registers. As soon as a vector is written out, its slot is refilled with the row after next by
// cp.async, which takes no register. So while a row is written and the next one is summed, vector by vector, nearly a whole row's part
// is always in flight, up to 128 KiB an SM, also while the cluster waits for the sums of its blocks, once a row.
// Each exponential is computed twice: 64 Ki elements of bf16 an SM are 2 * 2.2 us at 16 exponentials a cycle, and memory needs 8 us for
// them; exponentials kept in fp32 would need twice the slots. The next row's number comes from a tile counter, two rows ahead.
#pragma once
#include "exponentials.cuh"

__device__ __forceinline__ unsigned shared_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }
template <typename T> __device__ __forceinline__ void prefetch(Vec16<T>* slot, const T* from, int bytes) {
    // Of the last vector of the matrix only the bytes inside the matrix; the rest of the slot becomes 0.
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(slot)), "l"(from), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void wait_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

__device__ __forceinline__ unsigned address_in(unsigned rank, const void* mine) {
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(mine)), "r"(rank));
    return remote;
}
// Called by one thread of a block, before any thread of the cluster may use it: `init_mbarrier` once, `expect` before each use.
__device__ __forceinline__ void init_mbarrier(unsigned long long* mbarrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(mbarrier)) : "memory");
}
__device__ __forceinline__ void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void expect(unsigned long long* mbarrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(mbarrier)), "r"(bytes) : "memory");
}
// Store 8 bytes at the address of `mine`, but in block `rank` of the cluster, whose mbarrier counts them.
__device__ __forceinline__ void send(unsigned rank, const void* mine, unsigned long long bits, unsigned long long* mbarrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(address_in(rank, mine)), "l"(bits),
                 "r"(address_in(rank, mbarrier))
                 : "memory");
}
// The acquire has the scope of the block, as in CUTLASS where the bytes come from another block: they are in our own shared memory by
// then, and with the scope of the cluster each warp would empty the L1 cache (CCTL.IVALL).
__device__ __forceinline__ void wait_for(unsigned long long* mbarrier, int parity) {
    asm volatile(
        "{\n\t.reg .pred ready;\n"
        "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 ready, [%0], %1;\n"
        "\t@!ready bra again;\n}" ::"r"(shared_address(mbarrier)),
        "r"(parity)
        : "memory");
}

// What atomicAdd(tile_counter, 1) returns, without a wait before it is used: ptxas turns an addition into one for the whole warp and
// shuffles its result at once.
__device__ __forceinline__ int fetch_tile(int* tile_counter) {
    int tile;
    asm volatile("atom.global.inc.u32 %0, [%1], 0x7fffffff;" : "=r"(tile) : "l"(__cvta_generic_to_global(tile_counter)) : "memory");
    return tile;
}

// R is a Row of VECTORS vectors a thread, one row a block. The methods of `use` are called for every row in turn:
//     use.prefetched(row)    its vectors are being prefetched; `row` may not exist (>= m)
//     use.summed(row)        one iteration later, before its vectors are summed
//     use.reduced(row, all)  when its maximum and sum are known
//     use.vector(row, k, p)  with the exponentials, whose sum is 1, of the k-th vector; it may change them before they are stored
template <typename T, int LANES, int VECTORS, int CLUSTER, int IN_REGISTERS, bool ALIGNED> struct PersistentExponentials {
    using R = Row<T, LANES, VECTORS, CLUSTER, 1, ALIGNED>;
    using W = Vec16<T>;
    static constexpr int WIDTH = W::WIDTH;
    static constexpr int IN_SHARED = VECTORS - IN_REGISTERS, SET = IN_SHARED * LANES;
    static constexpr int WARPS = LANES / 32, PARTS = WARPS * CLUSTER;
    static constexpr int GROUP = 2, GROUPS = (VECTORS + GROUP - 1) / GROUP;  // of vectors that are waited for together

    // Where a row lies.
    struct Span {
        const T* first;  // its first vector
        long long left;  // elements of the matrix from there on
        int head, vectors;
    };

    const T* x;
    T* y;
    R row;  // the one that is written
    Span summed, prefetched;
    W* write_slots;  // of the row that is written, and then of the one that is prefetched
    W* sum_slots;    // of the row that is summed
    // As bits: the compiler would give each 16-bit element a register of its own, and wait for the load to do so.
    uint4 write_registers[IN_REGISTERS > 0 ? IN_REGISTERS : 1], sum_registers[IN_REGISTERS > 0 ? IN_REGISTERS : 1];
    Exponentials all;  // of the row that is written
    float inverse;

    // `init_mbarriers` runs first, since another block may write to the mbarriers as soon as `row` exists.
    __device__ __forceinline__ PersistentExponentials(const T* x_, T* y_, long long m, int n) : x(x_), y(y_), row((init_mbarriers(), m), n) {
        extern __shared__ __align__(16) unsigned char slot_memory[];
        sum_slots = reinterpret_cast<W*>(slot_memory) + threadIdx.x;
        write_slots = sum_slots + SET;
    }

    template <typename Use> __device__ __forceinline__ void walk(int* tile_counter, Use& use) {
        const bool is_leader = threadIdx.x == 0 && row.rank == 0;
        const int clusters = gridDim.x / CLUSTER;
        long long written_row = row.m, summed_row = blockIdx.x / CLUSTER, prefetched_row = summed_row + clusters;
        all = {LOWEST, 0.0f};
        inverse = 0.0f;
        summed = span_of(summed_row);
        use.prefetched(summed_row);
        fetch_all<0>();
        row.wait_for_cluster();
        for (int iteration = 0;; ++iteration) {
            row.seek(written_row);
            prefetched = span_of(prefetched_row);
            use.summed(summed_row);
            use.prefetched(prefetched_row);
            int tile = 0;
            if (is_leader) {
                tile = fetch_tile(tile_counter);  // needed at the end of the iteration only
            }
            Exponentials mine = {LOWEST, 0.0f};
            step<0>(mine, use);
            if (summed_row >= row.m) {
                break;
            }
            const long long known = 2ll * clusters + exchange(mine, tile, is_leader, iteration);
            inverse = 1.0f / all.sum;
            use.reduced(summed_row, all);
            written_row = summed_row;
            summed_row = prefetched_row;
            prefetched_row = known;
            summed = prefetched;
            W* const written = write_slots;
            write_slots = sum_slots;
            sum_slots = written;
        }
        wait_groups<0>();
        // The last cluster resets the counters for the next launch.
        if (is_leader) {
            __threadfence();
            if (atomicAdd(tile_counter + 1, 1) == clusters - 1) {
                tile_counter[0] = 0;
                tile_counter[1] = 0;
            }
        }
    }

private:
    // What the warps of a cluster exchange. Two alternate: a block that is ahead by one row writes into the one that no block reads.
    struct Exchange {
        Exponentials parts[PARTS];
        long long tile;
        unsigned long long mbarrier;
    };
    static constexpr int EXCHANGE_BYTES = 8 * (PARTS + 1);
    static __device__ __forceinline__ Exchange* exchange_buffer(int iteration) {
        __shared__ __align__(8) unsigned char memory[2 * sizeof(Exchange)];
        return reinterpret_cast<Exchange*>(memory) + iteration % 2;
    }
    static __device__ __forceinline__ void init_mbarriers() {
        if (CLUSTER > 1 && threadIdx.x == 0) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                init_mbarrier(&exchange_buffer(i)->mbarrier);
                expect(&exchange_buffer(i)->mbarrier, EXCHANGE_BYTES);
            }
            fence_mbarrier_init();
        }
    }

    // Set `all` of the row that `mine` is a part of, and return the leader's tile. A cluster barrier would be slower: its release waits until
    // everything that a thread has written has reached L2 (MEMBAR.GPU), and perhaps until its prefetches have arrived.
    __device__ __forceinline__ long long exchange(Exponentials mine, int tile, bool is_leader, int iteration) {
        Exchange* buffer = exchange_buffer(iteration);
        const Exponentials none = {LOWEST, 0.0f};
        if constexpr (CLUSTER == 1) {
            if (is_leader) {
                buffer->tile = tile;
            }
            all = row.reduce(mine, Merge(), none);
        } else {
            const Exponentials part = warp_reduce<32>(mine, Merge());
            const int warp = threadIdx.x / 32, in_warp = threadIdx.x % 32;
            if (in_warp < CLUSTER) {
                const unsigned long long bits =
                    (unsigned long long)__float_as_uint(part.sum) << 32 | __float_as_uint(part.top);
                send(in_warp, buffer->parts + row.rank * WARPS + warp, bits, &buffer->mbarrier);
            }
            if (is_leader) {
#pragma unroll
                for (int i = 0; i < CLUSTER; ++i) {
                    send(i, &buffer->tile, (unsigned long long)tile, &buffer->mbarrier);
                }
            }
            wait_for(&buffer->mbarrier, iteration / 2 % 2);
            if (threadIdx.x == 0) {
                expect(&buffer->mbarrier, EXCHANGE_BYTES);  // of the iteration after the next one
            }
            Exponentials merged = none;
#pragma unroll
            for (int i = 0; i < (PARTS + 31) / 32; ++i) {
                const int at = i * 32 + in_warp;
                merged = Merge()(merged, at < PARTS ? buffer->parts[at] : none);
            }
            all = warp_reduce<32>(merged, Merge());
        }
        return buffer->tile;
    }

    __device__ __forceinline__ Span span_of(long long at) const {
        const long long start = at * row.n;
        const int head = ALIGNED ? 0 : (int)(start % WIDTH);
        return {x + (start - head), row.total - (start - head), head, at < row.m ? (head + row.n + WIDTH - 1) / WIDTH : 0};
    }

    __device__ __forceinline__ void fetch(const Span& span, W* slot, uint4& own, int k) const {
        const int j = row.vector(k);
        if (j < span.vectors) {
            const T* at = span.first + (long long)j * WIDTH;
            const long long left = span.left - (long long)j * WIDTH;
            const bool whole = ALIGNED || left >= WIDTH;
            if (k >= IN_REGISTERS) {
                prefetch(slot + (k - IN_REGISTERS) * LANES, at, whole ? 16 : (int)left * (int)sizeof(T));
            } else if (whole) {
                own = *reinterpret_cast<const uint4*>(at);
            } else {
                constexpr int PIECE = 4 / sizeof(T);
                unsigned piece[4] = {0, 0, 0, 0};
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    piece[e / PIECE] |= e < left ? R::bits_of(at[e]) << 16 * (e % PIECE) : 0u;
                }
                own = make_uint4(piece[0], piece[1], piece[2], piece[3]);
            }
        }
    }

    // Prefetch the vectors of the first row.
    template <int G> __device__ __forceinline__ void fetch_all() {
#pragma unroll
        for (int k = G * GROUP; k < (G + 1) * GROUP && k < VECTORS; ++k) {
            fetch(summed, sum_slots, sum_registers[k < IN_REGISTERS ? k : 0], k);
        }
        commit_group();
        if constexpr (G + 1 < GROUPS) {
            fetch_all<G + 1>();
        }
    }

    static __device__ __forceinline__ W vector_of(uint4 bits) { return *reinterpret_cast<const W*>(&bits); }

    // A vector of the row that is summed, with -inf where it is not the row's.
    __device__ __forceinline__ W masked(W w, int k) const {
        const int j = row.vector(k);
        uint4& bits = *reinterpret_cast<uint4*>(&w);
        if (j >= summed.vectors) {
            bits = R::filled(minus_infinity<T>());
        } else if (!ALIGNED && (j == 0 || j == summed.vectors - 1)) {
            constexpr int PIECE = 4 / sizeof(T);
            const unsigned fill = R::bits_of(minus_infinity<T>());
            unsigned piece[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) {
                if ((unsigned)(j * WIDTH + i - summed.head) >= (unsigned)row.n) {
                    const int at = 16 * (i % PIECE);
                    piece[i / PIECE] = PIECE == 1 ? fill : (piece[i / PIECE] & ~(0xffffu << at)) | fill << at;
                }
            }
            bits = make_uint4(piece[0], piece[1], piece[2], piece[3]);
        }
        return w;
    }

    // Write some vectors of one row, sum those of the next row, and prefetch those of the row after it.
    template <int G, typename Use> __device__ __forceinline__ void step(Exponentials& mine, Use& use) {
        constexpr int FIRST = G * GROUP, COUNT = VECTORS - FIRST < GROUP ? VECTORS - FIRST : GROUP;
        if (row.inside) {
#pragma unroll
            for (int k = FIRST; k < FIRST + COUNT; ++k) {
                float p[WIDTH];
                widen(k < IN_REGISTERS ? vector_of(write_registers[k < IN_REGISTERS ? k : 0]) : write_slots[(k - IN_REGISTERS) * LANES], p);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    p[e] = exponential(p[e] - all.top) * inverse;
                }
                use.vector(row, k, p);
                row.store(y, k, narrow<T>(p));
            }
        }
#pragma unroll
        for (int k = FIRST; k < FIRST + COUNT; ++k) {
            if (k >= IN_REGISTERS) {
                fetch(prefetched, write_slots, write_registers[0], k);
            }
        }
        commit_group();
        // The oldest of GROUPS + 1 groups.
        wait_groups<GROUPS>();
        W w[COUNT];
#pragma unroll
        for (int k = FIRST; k < FIRST + COUNT; ++k) {
            w[k - FIRST] =
                masked(k < IN_REGISTERS ? vector_of(sum_registers[k < IN_REGISTERS ? k : 0]) : sum_slots[(k - IN_REGISTERS) * LANES], k);
        }
        Accumulate{mine}(w);
#pragma unroll
        for (int k = FIRST; k < FIRST + COUNT && k < IN_REGISTERS; ++k) {
            // It has arrived: move it, so that the load below writes to registers that no instruction waits for.
            write_registers[k] = sum_registers[k];
            fetch(prefetched, write_slots, sum_registers[k], k);
        }
        if constexpr (G + 1 < GROUPS) {
            step<G + 1>(mine, use);
        }
    }
};
