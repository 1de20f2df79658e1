// `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of long rows by persistent blocks. Each thread has buffers in shared memory for
// its own vectors of a row. As soon as it has stored a vector of y, it prefetches the same vector of the next row by cp.async, which takes
// no register. Threads synchronise only to reduce, and nearly all of an SM's shared memory holds bytes in flight. For rows longer than
// shared memory, the first ASYNC_IN_REGISTERS vectors of a thread are prefetched into registers instead.
// The next row comes from a tile counter: with a fixed stride the slowest SM ends 8 % later than the mean.
#include "conversions.cuh"
#include "rows.cuh"

using T = ELEMENT;
using W = Vec16<T>;
using R = Row<T, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, 1, ROW_ALIGNED>;
constexpr int WIDTH = W::WIDTH;
constexpr int IN_REGISTERS = ASYNC_IN_REGISTERS;
constexpr int BUFFERS = ROW_VECTORS - IN_REGISTERS;
constexpr int AHEAD = ADDS ? 2 : 1;  // rows that are taken from the tile counter in advance: r is prefetched earlier than x

__device__ __forceinline__ void prefetch(W* buffer, const T* from, int bytes) {
    // Of the matrix' last vector only the elements that exist; the rest of the buffer becomes 0.
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(buffer)), "l"(from), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void wait_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

// Position of a part of a row in memory.
struct Part {
    long long base;  // index of the first vector's first element
    long long left;  // elements of the matrix from there on
    int vectors;
};

extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_BLOCKS) normalise_async(
    const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ w, const T* __restrict__ b, T* __restrict__ s,
    T* __restrict__ y, long long m, int n, float eps, int* tile_counter) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ long long ids[4];
    W* buffers = reinterpret_cast<W*>(memory) + threadIdx.x;
    W* r_buffers = buffers + BUFFERS * ROW_LANES;
    W x_registers[IN_REGISTERS > 0 ? IN_REGISTERS : 1], r_registers[IN_REGISTERS > 0 && ADDS ? IN_REGISTERS : 1];
    R row(m, n);
    row.wait_for_cluster();
    const int clusters = gridDim.x / ROW_CLUSTER;
    long long current = blockIdx.x / ROW_CLUSTER, next = current + clusters;  // next: with ADDS known one row earlier

    auto part_of = [&](long long at) {
        row.seek(at);
        const Part position = {row.start - row.head, row.total - (row.start - row.head), row.vectors};
        row.seek(current);
        return position;
    };
    auto fetch = [&](const T* from, const Part& part, W* buffer, W& own, int k) {
        const int j = row.vector(k);
        if (j < part.vectors) {
            const T* at = from + part.base + (long long)j * WIDTH;
            const long long left = part.left - (long long)j * WIDTH;
            const int bytes = ROW_ALIGNED || left >= WIDTH ? 16 : (int)left * (int)sizeof(T);
            if (k >= IN_REGISTERS) {
                prefetch(buffer + (k - IN_REGISTERS) * ROW_LANES, at, bytes);
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
    // The vector with 0 for elements outside the row.
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
    auto vector_of = [&](int k) { return k < IN_REGISTERS ? x_registers[k < IN_REGISTERS ? k : 0] : buffers[(k - IN_REGISTERS) * ROW_LANES]; };

    Part part = part_of(current), part_ahead = part_of(next);
    if (ADDS) {
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            fetch(r, part, r_buffers, r_registers[ADDS && k < IN_REGISTERS ? k : 0], k);
        }
        close_group();
    }
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        fetch(x, part, buffers, x_registers[k < IN_REGISTERS ? k : 0], k);
        close_group();
    }

    for (int step = 0; current < m; ++step) {
        row.seek(current);
        long long* slot = ids + step % 2;
        if (threadIdx.x == 0 && row.rank == 0) {
            const long long counted = (long long)clusters * AHEAD + atomicAdd(tile_counter, 1);
            if (ROW_CLUSTER == 1) {
                *slot = counted;
            } else {
#pragma unroll
                for (int i = 0; i < ROW_CLUSTER; ++i) {
                    push_to(slot, i, counted);
                }
            }
        }
        float total = 0.0f;
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            // ROW_VECTORS groups are in flight; the oldest of them is this vector.
            wait_groups<ROW_VECTORS - 1>();
            W v = masked(vector_of(k), k);
            float a[WIDTH];
            widen(v, a);
            if (ADDS) {
                float c[WIDTH];
                widen(masked(k < IN_REGISTERS ? r_registers[ADDS && k < IN_REGISTERS ? k : 0] : r_buffers[(k - IN_REGISTERS) * ROW_LANES], k), c);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    a[e] += c[e];
                }
                // The sum as it is stored, so that s is the row that is normalised.
                v = narrow<T>(a);
                widen(v, a);
                row.store(s, k, v);
                if (k < IN_REGISTERS) {
                    x_registers[k < IN_REGISTERS ? k : 0] = v;
                } else {
                    buffers[(k - IN_REGISTERS) * ROW_LANES] = v;
                }
                fetch(r, part_ahead, r_buffers, r_registers[ADDS && k < IN_REGISTERS ? k : 0], k);
            }
            close_group();
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                total = CENTRED ? total + a[e] : fmaf(a[e], a[e], total);
            }
        }
        // The barrier of this reduction also makes the new row number visible.
        total = row.reduce(total, Add{}, 0.0f);
        const long long counted = *slot;
        float mean = 0.0f;
        if (CENTRED) {
            mean = total / n;
            total = 0.0f;
#pragma unroll
            for (int k = 0; k < ROW_VECTORS; ++k) {
                float a[WIDTH];
                widen(vector_of(k), a);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    const float away = row.holds(k, e) ? a[e] - mean : 0.0f;
                    total = fmaf(away, away, total);
                }
            }
            total = row.reduce(total, Add{}, 0.0f);
        }
        if (!ADDS) {
            next = counted;
            part_ahead = part_of(next);
        }
        const float scale = rsqrtf(total / n + eps);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float a[WIDTH], g[WIDTH], c[WIDTH];
            widen(vector_of(k), a);
            widen(row.load_beside(w, k), g);
            if (CENTRED) {
                widen(row.load_beside(b, k), c);
            }
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                a[e] = CENTRED ? fmaf((a[e] - mean) * scale, g[e], c[e]) : a[e] * scale * g[e];
            }
            row.store(y, k, narrow<T>(a));
            fetch(x, part_ahead, buffers, x_registers[k < IN_REGISTERS ? k : 0], k);
            close_group();
        }
        current = next;
        if (ADDS) {
            next = counted;
            part_ahead = part_of(next);
        }
    }
    wait_groups<0>();
    // The last cluster resets the counters.
    if (threadIdx.x == 0 && row.rank == 0) {
        __threadfence();
        if (atomicAdd(tile_counter + 1, 1) == clusters - 1) {
            tile_counter[0] = 0;
            tile_counter[1] = 0;
        }
    }
}
