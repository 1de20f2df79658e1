// Powers of long rows by clusters that stay: a thread has the same columns of every row that its cluster takes. For each of its
// words it has two places, of the row that is written and of the row that is summed meanwhile, in shared memory and (the first
// HELD words) in registers. As soon as a word is written out its place is asked for the row after next, by cp.async, which takes
// no register; so while a row is written and the next one summed, word by word, there is always nearly a whole row's part, up to
// 128 KiB an SM, on its way, also while the cluster waits for the sums of its blocks, once a row.
// The power is taken twice: 64 Ki elements of bf16 an SM are 2 * 2.2 us at 16 powers a cycle, memory needs 8 us for them; powers kept
// in fp32 would take twice the places. Which row comes next is claimed from a counter, two rows before its turn.
#pragma once
#include "exponentials.cuh"

__device__ __forceinline__ unsigned shared_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }
template <typename T> __device__ __forceinline__ void ask(Word<T>* place, const T* from, int bytes) {
    // Of the matrix' last word only what is there; the rest of the place becomes 0.
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(place)), "l"(from), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void wait_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

__device__ __forceinline__ unsigned address_in(unsigned rank, const void* mine) {
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(mine)), "r"(rank));
    return remote;
}
// By one thread of a block, before any of the cluster's may count on it: `begin` once, `expect` before each use.
__device__ __forceinline__ void begin_mailbox(unsigned long long* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void show_mailboxes() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void expect(unsigned long long* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}
// 8 bytes to where `mine` lies, but in block `rank` of the cluster, whose barrier counts them.
__device__ __forceinline__ void send(unsigned rank, const void* mine, unsigned long long bits, unsigned long long* barrier) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(address_in(rank, mine)), "l"(bits),
                 "r"(address_in(rank, barrier))
                 : "memory");
}
// Acquires for the block, as CUTLASS does where the bytes come from another one: they lie in our own shared memory by then, and for
// the cluster each warp would empty the L1 cache (CCTL.IVALL).
__device__ __forceinline__ void await(unsigned long long* barrier, int parity) {
    asm volatile(
        "{\n\t.reg .pred there;\n"
        "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
        "\t@!there bra again;\n}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

// What atomicAdd(claims, 1) gives, not waited for before it is used: of an addition ptxas makes one for the warp, whose result it
// shuffles at once.
__device__ __forceinline__ int draw(int* claims) {
    int found;
    asm volatile("atom.global.inc.u32 %0, [%1], 0x7fffffff;" : "=r"(found) : "l"(__cvta_generic_to_global(claims)) : "memory");
    return found;
}

// R is a Row of WORDS words a thread, one row a block. `use` sees every row in turn:
//     use.asked(row)        its words have been asked for; `row` may not exist (>= m)
//     use.summed(row)       one turn later, before its words are summed
//     use.found(row, all)   when its maximum and sum are known
//     use.word(row, k, p)   the powers, sum 1, of the k-th word, which may be changed before they are stored
template <typename T, int LANES, int WORDS, int CLUSTER, int HELD, bool ALIGNED> struct Columns {
    using R = Row<T, LANES, WORDS, CLUSTER, 1, ALIGNED>;
    using W = Word<T>;
    static constexpr int WIDTH = W::WIDTH;
    static constexpr int FAR = WORDS - HELD, SET = FAR * LANES;
    static constexpr int WARPS = LANES / 32, PARTS = WARPS * CLUSTER;
    static constexpr int GROUP = 2, GROUPS = (WORDS + GROUP - 1) / GROUP;  // of words that are waited for together

    // What of a row lies where.
    struct Span {
        const T* first;  // its first word
        long long left;  // elements of the matrix from there on
        int head, words;
    };

    const T* x;
    T* y;
    R row;  // the one that is written
    Span summed, asked;
    W* places;  // of the row that is written, and then of the one that is asked for
    W* others;  // of the row that is summed
    // As bits: of single halves the compiler would give each a register of its own, and wait for the load to do so.
    uint4 held[HELD > 0 ? HELD : 1], held_other[HELD > 0 ? HELD : 1];
    Exponentials all;  // of the row that is written
    float inverse;

    // After `mailboxes`, which another block may write into as soon as `row` has begun.
    __device__ __forceinline__ Columns(const T* x_, T* y_, long long m, int n) : x(x_), y(y_), row((mailboxes(), m), n) {
        extern __shared__ __align__(16) unsigned char column_memory[];
        others = reinterpret_cast<W*>(column_memory) + threadIdx.x;
        places = others + SET;
    }

    template <typename Use> __device__ __forceinline__ void walk(int* claims, Use& use) {
        const bool leads = threadIdx.x == 0 && row.rank == 0;
        const int teams = gridDim.x / CLUSTER;
        long long now = row.m, next = blockIdx.x / CLUSTER, after = next + teams;
        all = {LOWEST, 0.0f};
        inverse = 0.0f;
        summed = span_of(next);
        use.asked(next);
        fetch_all<0>();
        row.begun();
        for (int turn = 0;; ++turn) {
            row.seek(now);
            asked = span_of(after);
            use.summed(next);
            use.asked(after);
            int ticket = 0;
            if (leads) {
                ticket = draw(claims);  // needed at the end of the turn only
            }
            Exponentials mine = {LOWEST, 0.0f};
            step<0>(mine, use);
            if (next >= row.m) {
                break;
            }
            const long long known = 2ll * teams + exchange(mine, ticket, leads, turn);
            inverse = 1.0f / all.sum;
            use.found(next, all);
            now = next;
            next = after;
            after = known;
            summed = asked;
            W* const written = places;
            places = others;
            others = written;
        }
        wait_groups<0>();
        // The last one out leaves the counters as they were found.
        if (leads) {
            __threadfence();
            if (atomicAdd(claims + 1, 1) == teams - 1) {
                claims[0] = 0;
                claims[1] = 0;
            }
        }
    }

private:
    // What the warps of a cluster tell each other, by turns: a block that is ahead by one row writes into the one that nobody reads.
    struct Mailbox {
        Exponentials parts[PARTS];
        long long ticket;
        unsigned long long barrier;
    };
    static constexpr int MAIL_BYTES = 8 * (PARTS + 1);
    static __device__ __forceinline__ Mailbox* mailbox(int turn) {
        __shared__ __align__(8) unsigned char memory[2 * sizeof(Mailbox)];
        return reinterpret_cast<Mailbox*>(memory) + turn % 2;
    }
    static __device__ __forceinline__ void mailboxes() {
        if (CLUSTER > 1 && threadIdx.x == 0) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                begin_mailbox(&mailbox(i)->barrier);
                expect(&mailbox(i)->barrier, MAIL_BYTES);
            }
            show_mailboxes();
        }
    }

    // `all` of the row that `mine` is a part of; the leader's ticket. Not by a barrier of the cluster: its release waits until
    // everything that a thread has written has reached L2 (MEMBAR.GPU), and who knows, until what it has asked for has come.
    __device__ __forceinline__ long long exchange(Exponentials mine, int ticket, bool leads, int turn) {
        Mailbox* box = mailbox(turn);
        const Exponentials none = {LOWEST, 0.0f};
        if constexpr (CLUSTER == 1) {
            if (leads) {
                box->ticket = ticket;
            }
            all = row.reduce(mine, Join(), none);
        } else {
            const Exponentials part = warp_reduce<32>(mine, Join());
            const int warp = threadIdx.x / 32, in_warp = threadIdx.x % 32;
            if (in_warp < CLUSTER) {
                const unsigned long long bits =
                    (unsigned long long)__float_as_uint(part.sum) << 32 | __float_as_uint(part.top);
                send(in_warp, box->parts + row.rank * WARPS + warp, bits, &box->barrier);
            }
            if (leads) {
#pragma unroll
                for (int i = 0; i < CLUSTER; ++i) {
                    send(i, &box->ticket, (unsigned long long)ticket, &box->barrier);
                }
            }
            await(&box->barrier, turn / 2 % 2);
            if (threadIdx.x == 0) {
                expect(&box->barrier, MAIL_BYTES);  // of the turn after next
            }
            Exponentials joined = none;
#pragma unroll
            for (int i = 0; i < (PARTS + 31) / 32; ++i) {
                const int at = i * 32 + in_warp;
                joined = Join()(joined, at < PARTS ? box->parts[at] : none);
            }
            all = warp_reduce<32>(joined, Join());
        }
        return box->ticket;
    }

    __device__ __forceinline__ Span span_of(long long at) const {
        const long long start = at * row.n;
        const int head = ALIGNED ? 0 : (int)(start % WIDTH);
        return {x + (start - head), row.total - (start - head), head, at < row.m ? (head + row.n + WIDTH - 1) / WIDTH : 0};
    }

    __device__ __forceinline__ void fetch(const Span& span, W* place, uint4& own, int k) const {
        const int j = row.word(k);
        if (j < span.words) {
            const T* at = span.first + (long long)j * WIDTH;
            const long long left = span.left - (long long)j * WIDTH;
            const bool whole = ALIGNED || left >= WIDTH;
            if (k >= HELD) {
                ask(place + (k - HELD) * LANES, at, whole ? 16 : (int)left * (int)sizeof(T));
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

    // The words of the first row.
    template <int G> __device__ __forceinline__ void fetch_all() {
#pragma unroll
        for (int k = G * GROUP; k < (G + 1) * GROUP && k < WORDS; ++k) {
            fetch(summed, others, held_other[k < HELD ? k : 0], k);
        }
        close_group();
        if constexpr (G + 1 < GROUPS) {
            fetch_all<G + 1>();
        }
    }

    static __device__ __forceinline__ W word_of(uint4 bits) { return *reinterpret_cast<const W*>(&bits); }

    // A word of the row that is summed, with -inf where it is not the row's.
    __device__ __forceinline__ W masked(W w, int k) const {
        const int j = row.word(k);
        uint4& bits = *reinterpret_cast<uint4*>(&w);
        if (j >= summed.words) {
            bits = R::filled(minus_infinity<T>());
        } else if (!ALIGNED && (j == 0 || j == summed.words - 1)) {
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

    // Some words of one row are written, the same of the next summed, the same of the one after asked for.
    template <int G, typename Use> __device__ __forceinline__ void step(Exponentials& mine, Use& use) {
        constexpr int FIRST = G * GROUP, COUNT = WORDS - FIRST < GROUP ? WORDS - FIRST : GROUP;
        if (row.inside) {
#pragma unroll
            for (int k = FIRST; k < FIRST + COUNT; ++k) {
                float p[WIDTH];
                widen(k < HELD ? word_of(held[k < HELD ? k : 0]) : places[(k - HELD) * LANES], p);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    p[e] = exponential(p[e] - all.top) * inverse;
                }
                use.word(row, k, p);
                row.store(y, k, narrow<T>(p));
            }
        }
#pragma unroll
        for (int k = FIRST; k < FIRST + COUNT; ++k) {
            if (k >= HELD) {
                fetch(asked, places, held[0], k);
            }
        }
        close_group();
        // The oldest of GROUPS + 1 groups.
        wait_groups<GROUPS>();
        W w[COUNT];
#pragma unroll
        for (int k = FIRST; k < FIRST + COUNT; ++k) {
            w[k - FIRST] = masked(k < HELD ? word_of(held_other[k < HELD ? k : 0]) : others[(k - HELD) * LANES], k);
        }
        Summing{mine}(w);
#pragma unroll
        for (int k = FIRST; k < FIRST + COUNT && k < HELD; ++k) {
            // It has arrived: moved, so that the load below goes where nobody waits.
            held[k] = held_other[k];
            fetch(asked, places, held_other[k], k);
        }
        if constexpr (G + 1 < GROUPS) {
            step<G + 1>(mine, use);
        }
    }
};
