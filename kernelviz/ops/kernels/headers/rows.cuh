// Rows in registers as 16-byte vectors, and reductions over a row: in a warp, a block, or a cluster of blocks that share a row too long
// for one SM through distributed shared memory. So a row is read from memory once, whatever its length.
//
// A kernel is compiled for one tile, usually by -DROW_LANES=512 -DROW_VECTORS=4 … and
//     using R = Row<ELEMENT, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, ROW_ROWS, ROW_ALIGNED>;
// LANES threads of a block share a row (a power of two, or a multiple of 32). Each holds VECTORS vectors. Each of CLUSTER blocks takes a
// part of the row. A block has ROWS rows (more than one only where LANES <= 32). The launch has LANES * ROWS threads and
// CLUSTER * ceil(m / ROWS) blocks. Rows may have any length n <= LANES * VECTORS * CLUSTER * WIDTH - WIDTH + 1 and any start: vectors are
// aligned to memory, and elements of a row's first and last vector that belong to its neighbours are replaced by a fill and never
// written. ALIGNED (n is a multiple of WIDTH) says that there are none.
#pragma once
#include "vec16.cuh"

struct Add {
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
    // NaN wins, as in torch.
    __device__ __forceinline__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};

template <typename V> __device__ __forceinline__ V shuffle_xor(V v, int lanes) {
    constexpr int PIECES = sizeof(V) / 4;
    union {
        V whole;
        int piece[PIECES];
    } mine, other;
    mine.whole = v;
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        other.piece[i] = __shfl_xor_sync(0xffffffffu, mine.piece[i], lanes);
    }
    return other.whole;
}

// Reduce over groups of `LANES` neighbouring lanes of a warp. Every lane gets the result; all lanes of the warp must take part.
template <int LANES, typename V, typename Combine> __device__ __forceinline__ V warp_reduce(V v, Combine combine) {
#pragma unroll
    for (int lanes = LANES / 2; lanes > 0; lanes /= 2) {
        v = combine(v, shuffle_xor(v, lanes));
    }
    return v;
}

// Store a value in the shared memory of block `rank` of this cluster, at the address that `mine` has in our own.
template <typename V> __device__ __forceinline__ void push_to(V* mine, unsigned rank, V v) {
    unsigned local = (unsigned)__cvta_generic_to_shared(mine), remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(rank));
    union {
        V whole;
        unsigned piece[sizeof(V) / 4];
    } bits;
    bits.whole = v;
#pragma unroll
    for (int i = 0; i < (int)(sizeof(V) / 4); ++i) {
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote + 4 * i), "r"(bits.piece[i]) : "memory");
    }
}

template <typename T, int LANES, int VECTORS, int CLUSTER, int ROWS, bool ALIGNED> struct Row {
    static constexpr int WIDTH = Vec16<T>::WIDTH;
    static constexpr int WARPS = LANES > 32 ? LANES / 32 : 1;
    static_assert(ROWS == 1 || LANES <= 32, "rows that share a block are reduced in a warp each");

    long long m;  // rows
    int n;        // their length
    long long row, start, total;  // number of the row, of its first element, of all elements
    int lane, rank, head, vectors;
    bool inside;  // the row exists (the last block may hold fewer)
    int reductions = 0;
    bool waiting = true;

    __device__ __forceinline__ Row(long long m_, int n_) : m(m_), n(n_) {
        rank = CLUSTER > 1 ? blockIdx.x % CLUSTER : 0;
        lane = ROWS > 1 ? threadIdx.x % LANES : threadIdx.x;
        total = m * n;
        seek((long long)(blockIdx.x / CLUSTER) * ROWS + (ROWS > 1 ? threadIdx.x / LANES : 0));
        if (CLUSTER > 1) {
            // The other blocks must have started before anything is written into their shared memory. `reduce` waits for that.
            asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
        }
    }

    // Continue with row r.
    __device__ __forceinline__ void seek(long long r) {
        row = r;
        inside = row < m;
        start = row * n;
        head = ALIGNED ? 0 : (int)(start % WIDTH);
        vectors = inside ? (head + n + WIDTH - 1) / WIDTH : 0;
    }

    // Number of this thread's k-th vector, counted from the vector that holds the row's first element.
    __device__ __forceinline__ int vector(int k) const { return (rank * VECTORS + k) * LANES + lane; }
    // The column of element e of that vector; outside 0 ... n - 1 it belongs to a neighbour.
    __device__ __forceinline__ int column(int k, int e) const { return vector(k) * WIDTH + e - head; }
    __device__ __forceinline__ bool holds(int k, int e) const {
        return ALIGNED ? vector(k) < vectors : (unsigned)column(k, e) < (unsigned)n && vector(k) < vectors;
    }

    // Load all vectors of this thread; the loads are issued together. Elements outside the row become `fill`.
    __device__ __forceinline__ void load(const T* x, Vec16<T> (&w)[VECTORS], T fill) const {
        const Vec16<T>* from = reinterpret_cast<const Vec16<T>*>(x + (start - head));
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            // In pieces of 4 bytes, here and below: the compiler would give each 16-bit element a register of its own.
            uint4 bits = filled(fill);
            const int j = vector(k);
            // The last vector of the whole matrix may reach beyond it. Not streaming: with evict-first loads the H200 reads rows of
            // 8 KiB 5 % slower.
            if (j < vectors && (ALIGNED || start - head + (long long)(j + 1) * WIDTH <= total)) {
                bits = *reinterpret_cast<const uint4*>(from + j);
            }
            *reinterpret_cast<uint4*>(&w[k]) = bits;
        }
        if (!ALIGNED) {
            mask(x, w, fill);
        }
    }

    // The same with 0 as the fill, and the end of the matrix computed once instead of for each vector.
    __device__ __forceinline__ void load_or_zero(const T* x, Vec16<T> (&w)[VECTORS]) const {
        const Vec16<T>* from = reinterpret_cast<const Vec16<T>*>(x + (start - head));
        // The last vector of the whole matrix may be cut; `mask` reads it element by element.
        const int whole = ALIGNED ? vectors : (int)min((long long)vectors, (total - (start - head)) / WIDTH);
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            uint4 bits = make_uint4(0, 0, 0, 0);
            if (vector(k) < whole) {
                // Neither streaming nor past the first-level cache: both read rows of 4 to 16 KiB 5 % slower.
                bits = *reinterpret_cast<const uint4*>(from + vector(k));
            }
            *reinterpret_cast<uint4*>(&w[k]) = bits;
        }
        if (!ALIGNED) {
            mask(x, w, T(0.0f));
        }
    }

    static __device__ __forceinline__ unsigned bits_of(T v) {
        if constexpr (sizeof(T) == 4) {
            return *reinterpret_cast<const unsigned*>(&v);
        } else {
            return *reinterpret_cast<const unsigned short*>(&v);
        }
    }
    static __device__ __forceinline__ uint4 filled(T fill) {
        const unsigned piece = sizeof(T) == 4 ? bits_of(fill) : bits_of(fill) * 0x10001u;
        return make_uint4(piece, piece, piece, piece);
    }

    // Replace elements of loaded vectors that are not the row's by `fill`. The last vector of the matrix, which may not be whole, is read
    // element by element.
    __device__ __forceinline__ void mask(const T* x, Vec16<T> (&w)[VECTORS], T fill) const {
        constexpr int PIECE = 4 / sizeof(T);  // elements of 4 bytes
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            const int j = vector(k);
            if (j >= vectors) {
                *reinterpret_cast<uint4*>(&w[k]) = filled(fill);
            } else if (!ALIGNED && (j == 0 || j == vectors - 1)) {
                const bool cut = start - head + (long long)(j + 1) * WIDTH > total;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    unsigned& bits = reinterpret_cast<unsigned*>(&w[k])[i];
                    unsigned masked = 0;
#pragma unroll
                    for (int e = 0; e < PIECE; ++e) {
                        const unsigned here = !holds(k, i * PIECE + e) ? bits_of(fill)
                                              : cut ? bits_of(x[start + column(k, i * PIECE + e)])
                                                    : (bits >> (16 * e)) & (PIECE == 1 ? 0xffffffffu : 0xffffu);
                        masked |= here << (16 * e);
                    }
                    bits = masked;
                }
            }
        }
    }

    // Store this thread's k-th vector; of a row's first and last vector only the elements of the row.
    __device__ __forceinline__ void store(T* y, int k, const Vec16<T>& w) const {
        const int j = vector(k);
        if (j >= vectors) {
            return;
        }
        if (ALIGNED || (j * WIDTH >= head && (j + 1) * WIDTH <= head + n)) {
            store_vec16(reinterpret_cast<Vec16<T>*>(y + (start - head)) + j, w);
        } else {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                if (holds(k, e)) {
                    y[start + column(k, e)] = w.e[e];
                }
            }
        }
    }

    // Load from an array of n elements (a weight) the vector with the columns of the row's k-th vector; one load if rows are aligned.
    __device__ __forceinline__ Vec16<T> load_beside(const T* v, int k) const {
        Vec16<T> w;
        if (ALIGNED) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                w.e[e] = T(0.0f);
            }
            if (vector(k) < vectors) {
                w = load_vec16(reinterpret_cast<const Vec16<T>*>(v) + vector(k));
            }
        } else {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                w.e[e] = holds(k, e) ? v[column(k, e)] : T(0.0f);
            }
        }
        return w;
    }

    // Combine one value a thread over the row; every thread gets the result. V is made of 4-byte pieces (at most 16 bytes). One barrier
    // a call. All threads of the block (of the cluster) must take part, also those of rows that do not exist.
    template <typename V, typename Combine> __device__ __forceinline__ V reduce(V v, Combine combine, V identity) {
        v = warp_reduce<(LANES < 32 ? LANES : 32)>(v, combine);
        if (WARPS == 1 && CLUSTER == 1) {
            return v;
        }
        constexpr int PARTS = WARPS * CLUSTER;
        // Two sets alternate: a block that is ahead by one reduction writes into the set that no block reads any more.
        __shared__ V slots[2][PARTS];
        V* mine = slots[reductions & 1];
        const int warp = threadIdx.x / 32, in_warp = threadIdx.x % 32;
        if (CLUSTER == 1) {
            if (in_warp == 0) {
                mine[warp] = v;
            }
            __syncthreads();
        } else {
            wait_for_cluster();
            if (in_warp < CLUSTER) {
                push_to(mine + rank * WARPS + warp, in_warp, v);
            }
            asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
        }
        ++reductions;
        V result = identity;
#pragma unroll
        for (int i = 0; i < (PARTS + 31) / 32; ++i) {
            const int at = i * 32 + in_warp;
            result = combine(result, at < PARTS ? mine[at] : identity);
        }
        return warp_reduce<32>(result, combine);
    }

    // Wait, once, until all blocks of the cluster have started. All threads must call it; `reduce` does.
    __device__ __forceinline__ void wait_for_cluster() {
        if (CLUSTER > 1 && waiting) {
            asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
            waiting = false;
        }
    }
};
