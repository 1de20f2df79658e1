// `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of long rows by blocks that stay. Each thread has places of its own in
// shared memory for the vectors of a row that are its own: as soon as it has written one out it asks for the same vector of the next row
// by cp.async, which takes no register. No thread waits for another but to reduce, and nearly all of an SM's shared memory is bytes
// on their way. The first ASYNC_HELD vectors of a thread wait in registers instead: rows longer than shared memory.
// Which row comes next is claimed from a counter: with a fixed stride the slowest SM ends 8 % behind the mean.
#include "conversions.cuh"
#include "rows.cuh"

using T = ELEMENT;
using W = Vec16<T>;
using R = Row<T, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, 1, ROW_ALIGNED>;
constexpr int WIDTH = W::WIDTH;
constexpr int HELD = ASYNC_HELD;
constexpr int PLACES = ROW_VECTORS - HELD;
constexpr int AHEAD = ADDS ? 2 : 1;  // rows that are claimed before their turn: r is asked for earlier than x

__device__ __forceinline__ void ask(W* place, const T* from, int bytes) {
    // Of the matrix' last vector only what is there; the rest of the place becomes 0.
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(place)), "l"(from), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void wait_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

// Part of a row: what lies where in memory.
struct Part {
    long long base;  // the first vector, in elements
    long long left;  // elements of the matrix from there on
    int vectors;
};

extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_BLOCKS) normalise_async(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, long long m, int n, float eps, int* tile_counter) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ long long ids[4];
    W* places = reinterpret_cast<W*>(memory) + threadIdx.x;
    W* others = places + PLACES * ROW_LANES;  // of r
    W held[HELD > 0 ? HELD : 1], held_other[HELD > 0 && ADDS ? HELD : 1];
    R row(m, n);
    row.wait_for_cluster();
    const int teams = gridDim.x / ROW_CLUSTER;
    long long now = blockIdx.x / ROW_CLUSTER, next = now + teams;  // next: of ADDS, known one turn earlier

    auto part_of = [&](long long at) {
        row.seek(at);
        const Part found = {row.start - row.head, row.total - (row.start - row.head), row.vectors};
        row.seek(now);
        return found;
    };
    auto fetch = [&](const T* from, const Part& part, W* place, W& own, int k) {
        const int j = row.vector(k);
        if (j < part.vectors) {
            const T* at = from + part.base + (long long)j * WIDTH;
            const long long left = part.left - (long long)j * WIDTH;
            const int bytes = ROW_ALIGNED || left >= WIDTH ? 16 : (int)left * (int)sizeof(T);
            if (k >= HELD) {
                ask(place + (k - HELD) * ROW_LANES, at, bytes);
            } else if (ROW_ALIGNED || bytes == 16) {
                own = load_vec16(reinterpret_cast<const W*>(at));
            } else {
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    own.e[e] = e < left ? at[e] : T(0.0f);
                }
            }
        }
    };
    // A vector with 0 where it is not the row's.
    auto masked = [&](W v, int k) {
        const int j = row.vector(k);
        if (j >= row.vectors) {
            *reinterpret_cast<uint4*>(&v) = make_uint4(0, 0, 0, 0);
        } else if (!ROW_ALIGNED && (j == 0 || j == row.vectors - 1)) {
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                v.e[e] = row.holds(k, e) ? v.e[e] : T(0.0f);
            }
        }
        return v;
    };
    auto word_of = [&](int k) { return k < HELD ? held[k < HELD ? k : 0] : places[(k - HELD) * ROW_LANES]; };

    Part part = part_of(now), part_ahead = part_of(next);
    if (ADDS) {
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            fetch(r, part, others, held_other[ADDS && k < HELD ? k : 0], k);
        }
        close_group();
    }
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        fetch(x, part, places, held[k < HELD ? k : 0], k);
        close_group();
    }

    for (int turn = 0; now < m; ++turn) {
        row.seek(now);
        long long* claimed = ids + turn % 2;
        if (threadIdx.x == 0 && row.rank == 0) {
            const long long found = (long long)teams * AHEAD + atomicAdd(tile_counter, 1);
            if (ROW_CLUSTER == 1) {
                *claimed = found;
            } else {
#pragma unroll
                for (int i = 0; i < ROW_CLUSTER; ++i) {
                    push_to(claimed, i, found);
                }
            }
        }
        float total = 0.0f;
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            // ROW_VECTORS groups are on their way; the oldest of them is this vector.
            wait_groups<ROW_VECTORS - 1>();
            W v = masked(word_of(k), k);
            float a[WIDTH];
            widen(v, a);
            if (ADDS) {
                float c[WIDTH];
                widen(masked(k < HELD ? held_other[ADDS && k < HELD ? k : 0] : others[(k - HELD) * ROW_LANES], k), c);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    a[e] += c[e];
                }
                // The sum as it is stored: whoever reads s gets the row that was normalised.
                v = narrow<T>(a);
                widen(v, a);
                row.store(s, k, v);
                if (k < HELD) {
                    held[k < HELD ? k : 0] = v;
                } else {
                    places[(k - HELD) * ROW_LANES] = v;
                }
                fetch(r, part_ahead, others, held_other[ADDS && k < HELD ? k : 0], k);
            }
            close_group();
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                total = CENTRED ? total + a[e] : fmaf(a[e], a[e], total);
            }
        }
        // Its barrier makes what was claimed known, too.
        total = row.reduce(total, Add{}, 0.0f);
        const long long known = *claimed;
        float mean = 0.0f;
        if (CENTRED) {
            mean = total / n;
            total = 0.0f;
#pragma unroll
            for (int k = 0; k < ROW_VECTORS; ++k) {
                float a[WIDTH];
                widen(word_of(k), a);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    const float away = row.holds(k, e) ? a[e] - mean : 0.0f;
                    total = fmaf(away, away, total);
                }
            }
            total = row.reduce(total, Add{}, 0.0f);
        }
        if (!ADDS) {
            next = known;
            part_ahead = part_of(next);
        }
        const float scale = rsqrtf(total / n + eps);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float a[WIDTH], g[WIDTH], c[WIDTH];
            widen(word_of(k), a);
            widen(row.load_beside(w, k), g);
            if (CENTRED) {
                widen(row.load_beside(b, k), c);
            }
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                a[e] = CENTRED ? fmaf((a[e] - mean) * scale, g[e], c[e]) : a[e] * scale * g[e];
            }
            row.store(y, k, narrow<T>(a));
            fetch(x, part_ahead, places, held[k < HELD ? k : 0], k);
            close_group();
        }
        now = next;
        if (ADDS) {
            next = known;
            part_ahead = part_of(next);
        }
    }
    wait_groups<0>();
    // The last one out leaves the counters as they were found.
    if (threadIdx.x == 0 && row.rank == 0) {
        __threadfence();
        if (atomicAdd(tile_counter + 1, 1) == teams - 1) {
            tile_counter[0] = 0;
            tile_counter[1] = 0;
        }
    }
}
