// Backward passes of `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS): persistent clusters of blocks with fixed columns.
// Each thread has the same vectors of every row of its cluster: the weight is read once, dw and db of these columns are summed in fp32
// registers over all these rows, and x and dy are read once. They stream through the thread's own buffers in shared memory by cp.async,
// prefetched STAGES rows ahead. The one reduction of a row is exchanged while the threads store the row before and sum the row after, so
// that no thread waits for it.
// The rows of a cluster are fixed, without a tile counter as in cuda_async.cu, because dw would otherwise differ from run to run. Where
// rows do not start on 16 bytes, the number of clusters is such that all rows of a cluster start at the same offset within a vector
// (`period` in cuda_backward.py), because otherwise the columns of a thread would differ from row to row.
#include "conversions.cuh"
#include "row_beside.cuh"

using T = ELEMENT;
using W = Vec16<T>;
using R = Row<T, ROW_LANES, ROW_VECTORS, ROW_CLUSTER, ROW_ROWS, ROW_ALIGNED>;
constexpr int WIDTH = W::WIDTH;
constexpr int THREADS = ROW_LANES * ROW_ROWS;
constexpr int STAGE = ROW_VECTORS * THREADS;  // vectors of a tensor that a block has of a row (of ROW_ROWS rows)
constexpr int STAGES = ROW_STAGES;
constexpr int SUM_STAGES = STAGES - 1;  // of ds, which is read a phase later than x and dy, and prefetched in the same group

// Of a row: Σ g (x - mean) with g = dy w, and Σ g.
struct Sums {
    float of[CENTRED ? 2 : 1];
};
struct AddSums {
    __device__ __forceinline__ Sums operator()(Sums a, Sums b) const {
#pragma unroll
        for (int i = 0; i < (CENTRED ? 2 : 1); ++i) {
            a.of[i] += b.of[i];
        }
        return a;
    }
};

struct Statistics {
    float mean, scale;
};
__device__ __forceinline__ Statistics statistics_of(const float* mean, const float* scale, long long row) {
    return {CENTRED ? mean[row] : 0.0f, scale[row]};
}

__device__ __forceinline__ void prefetch(W* buffer, const T* from, int bytes) {
    // Of the matrix' last vector only the elements that exist; the rest of the buffer becomes 0.
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(buffer)), "l"(from), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void wait_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

// The exchange of a row's sums in two halves, `send` and later `receive`, which must alternate. Two alternating sets of slots: a thread
// that sends has received the sums of the row before, so all threads have sent those and have read the set before them.
// With mbarriers, because barrier.cluster with release and acquire compiles to a fence that waits for the thread's stores to global
// memory and invalidates L1, for every row. st.async counts its bytes at the receiver's mbarrier.
struct Exchange {
    static constexpr bool ALONE = ROW_LANES <= 32 && ROW_CLUSTER == 1;  // a warp or a part of it has the row
    static constexpr int WARPS = R::WARPS, PARTS = WARPS * ROW_CLUSTER, PIECES = sizeof(Sums) / 4;
    Sums (*slots)[PARTS];
    unsigned mbarriers;  // two of them, in shared memory
    Sums own;

    __device__ __forceinline__ Exchange(Sums (*slots_)[PARTS], const unsigned long long* mbarriers_)
        : slots(slots_), mbarriers((unsigned)__cvta_generic_to_shared(mbarriers_)) {}

    // Called once by all threads.
    __device__ __forceinline__ void begin(R& row) {
        if (ALONE) {
            return;
        }
        if (threadIdx.x == 0) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mbarriers + 8 * i), "r"(ROW_CLUSTER == 1 ? WARPS : 1) : "memory");
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        if (ROW_CLUSTER == 1) {
            __syncthreads();
        } else {
            row.wait_for_cluster();
            asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
        }
    }

    __device__ __forceinline__ void send(const R& row, Sums mine, int index) {
        mine = warp_reduce<(ROW_LANES < 32 ? ROW_LANES : 32)>(mine, AddSums{});
        if (ALONE) {
            own = mine;
            return;
        }
        Sums* slot = &slots[index & 1][row.rank * WARPS + threadIdx.x / 32];
        const unsigned mbarrier = mbarriers + 8 * (index & 1), in_warp = threadIdx.x % 32;
        if (ROW_CLUSTER == 1) {
            if (in_warp == 0) {
                *slot = mine;
                asm volatile("{.reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0];}" ::"r"(mbarrier) : "memory");
            }
            return;
        }
        if (threadIdx.x == 0) {
            asm volatile("{.reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;}" ::"r"(mbarrier),
                         "n"(PARTS * (int)sizeof(Sums))
                         : "memory");
        }
        if (in_warp < ROW_CLUSTER) {
            unsigned to, at;
            asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"((unsigned)__cvta_generic_to_shared(slot)), "r"(in_warp));
            asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(mbarrier), "r"(in_warp));
#pragma unroll
            for (int i = 0; i < PIECES; ++i) {
                asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(to + 4 * i),
                             "r"(__float_as_uint(mine.of[i])), "r"(at)
                             : "memory");
            }
        }
    }

    __device__ __forceinline__ Sums receive(int index) {
        if (ALONE) {
            return own;
        }
        unsigned done;
        do {
            asm volatile("{.reg .pred all; mbarrier.try_wait.parity.shared::cta.b64 all, [%1], %2; selp.u32 %0, 1, 0, all;}"
                         : "=r"(done)
                         : "r"(mbarriers + 8 * (index & 1)), "r"(index >> 1 & 1)
                         : "memory");
        } while (!done);
        Sums total = {};
#pragma unroll
        for (int i = 0; i < (PARTS + 31) / 32; ++i) {
            const int at = i * 32 + threadIdx.x % 32;
            total = AddSums()(total, at < PARTS ? slots[index & 1][at] : Sums{});
        }
        return warp_reduce<32>(total, AddSums{});
    }
};

// Stores a thread's sums of its k-th vector in a row of the partial sums, which `sum_parts` adds up. The first column is at `row.head`, so that
// vectors are aligned there, too. Stored number by number at their columns, each number is in a sector of its own. H200: layernorm of 510 rows of
// 9842 bf16, with 2.6 million such numbers of 132 blocks, took 41 us, of which these stores are the larger part by an estimate.
__device__ __forceinline__ void store_part(const R& row, float* part, int k, const float (&sum)[WIDTH]) {
    if (row.vector(k) < row.vectors) {
#pragma unroll
        for (int e = 0; e < WIDTH; e += 4) {
            *reinterpret_cast<float4*>(part + row.vector(k) * WIDTH + e) = make_float4(sum[e], sum[e + 1], sum[e + 2], sum[e + 3]);
        }
    }
}

// For rows that share a block: adds up their threads' sums of the same columns in the order of the rows, and stores them.
__device__ __forceinline__ void store_combined_part(const R& row, float* part, const float (&sum)[ROW_VECTORS][WIDTH], float* memory) {
    __syncthreads();
    const int first = threadIdx.x / ROW_LANES * row.n;
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            if (row.holds(k, e)) {
                memory[first + row.column(k, e)] = sum[k][e];
            }
        }
    }
    __syncthreads();
    const int rows = (int)min((long long)ROW_ROWS, row.m - (long long)blockIdx.x * ROW_ROWS);
    for (int column = threadIdx.x; column < row.n; column += THREADS) {
        float total = 0.0f;
#pragma unroll 8
        for (int i = 0; i < rows; ++i) {
            total += memory[i * row.n + column];
        }
        part[column] = total;
    }
}

// 1. Rows of up to 512 KiB. `parts`: one row of partial sums for each cluster with a pitch of `pitch`, first of dw, then of db.
extern "C" __global__ void __launch_bounds__(THREADS, ROW_BLOCKS) backward_rows(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ dy, const T* __restrict__ ds,
    const float* __restrict__ mean, const float* __restrict__ scale, T* __restrict__ dx, float* __restrict__ parts, long long m, int n,
    int pitch) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(8) Sums slots[2][Exchange::PARTS];
    __shared__ unsigned long long mbarriers[2];
    W* xs = reinterpret_cast<W*>(memory) + threadIdx.x;
    W* dys = xs + STAGES * STAGE;
    W* dss = dys + STAGES * STAGE;
    R row(m, n);
    Exchange exchange(slots, mbarriers);
    const int clusters = gridDim.x / ROW_CLUSTER, cluster = blockIdx.x / ROW_CLUSTER;
    const long long step = (long long)clusters * ROW_ROWS, first = (long long)cluster * ROW_ROWS;
    const int steps = (int)((m - first + step - 1) / step);
    // The last of the rows that share a block may not exist.
    const int own = ROW_ROWS == 1 ? steps : (int)((max(m - row.row, 0ll) + step - 1) / step);
    const long long stride = step * n;

    W weight[ROW_VECTORS];
    float dw[ROW_VECTORS][WIDTH], db[ROW_VECTORS][WIDTH];
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            dw[k][e] = 0.0f;
            db[k][e] = 0.0f;
        }
        // After the end of the row: set to 0 once and never prefetched.
        if (row.vector(k) >= row.vectors) {
#pragma unroll 1
            for (int s = 0; s < STAGES; ++s) {
                *reinterpret_cast<uint4*>(xs + s * STAGE + k * THREADS) = make_uint4(0, 0, 0, 0);
                *reinterpret_cast<uint4*>(dys + s * STAGE + k * THREADS) = make_uint4(0, 0, 0, 0);
            }
        }
    }

    // Prefetches the k-th vector of the row that starts `away` elements after the current one.
    auto fetch = [&](const T* from, W* buffer, int k, long long away) {
        const int j = row.vector(k);
        if (j < row.vectors) {
            const long long at = row.start - row.head + away + (long long)j * WIDTH, left = row.total - at;
            prefetch(buffer + k * THREADS, from + at, ROW_ALIGNED || left >= WIDTH ? 16 : (int)left * (int)sizeof(T));
        }
    };
    auto sums_of = [&](int stage, Statistics about) {
        Sums sums[2] = {};  // two chains of sums
        make_opaque(weight);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            const int j = row.vector(k);
            float a[WIDTH], d[WIDTH], g[WIDTH];
            widen(xs[stage * STAGE + k * THREADS], a);
            widen(dys[stage * STAGE + k * THREADS], d);
            widen(weight[k], g);
            // Elements of the neighbouring rows in a row's first and last vector must not enter its sums: they may be infinite.
            if (!ROW_ALIGNED && (j == 0 || j == row.vectors - 1)) {
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    a[e] = row.holds(k, e) ? a[e] : 0.0f;
                    d[e] = row.holds(k, e) ? d[e] : 0.0f;
                }
            }
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                g[e] *= d[e];
                sums[e % 2].of[0] = fmaf(g[e], CENTRED ? a[e] - about.mean : a[e], sums[e % 2].of[0]);
                if (CENTRED) {
                    sums[e % 2].of[CENTRED] += g[e];
                }
            }
        }
        return AddSums()(sums[0], sums[1]);
    };

    auto statistics_at = [&](int index) {
        return index < own ? statistics_of(mean, scale, row.row + index * step) : Statistics{0.0f, 0.0f};
    };
#pragma unroll 1  // unrolled, it would be a fifth of the code, which is fetched once
    for (int s = 0; s < STAGES; ++s) {
        if (s < own) {
#pragma unroll
            for (int k = 0; k < ROW_VECTORS; ++k) {
                fetch(x, xs + s * STAGE, k, s * stride);
                fetch(dy, dys + s * STAGE, k, s * stride);
                if (ADDS && s < SUM_STAGES) {
                    fetch(ds, dss + s * STAGE, k, s * stride);
                }
            }
        }
        close_group();
    }
    Statistics about = statistics_at(0), after = statistics_at(1);
    // Behind the first rows, for which nothing has to wait.
#pragma unroll
    for (int k = 0; k < ROW_VECTORS; ++k) {
        weight[k] = beside(row, w, k);
    }
    wait_groups<STAGES - 1>();
    const Sums first_sums = own > 0 ? sums_of(0, about) : Sums{};
    exchange.begin(row);
    exchange.send(row, first_sums, 0);

    const float each = 1.0f / n;
    int stage = 0, sum_stage = 0;
    for (int index = 0; index < steps; ++index) {
        const int next_stage = stage + 1 == STAGES ? 0 : stage + 1;
        const bool more = index + 1 < steps;
        const Statistics later = statistics_at(index + 2);
        Sums mine = {};
        if (more) {
            // All groups in flight except the last STAGES - 2 belong to the next row, and to ds of this row.
            wait_groups<STAGES - 2>();
            if (index + 1 < own) {
                mine = sums_of(next_stage, after);
            }
        } else {
            wait_groups<0>();
        }
        const Sums total = exchange.receive(index);
        if (more) {
            exchange.send(row, mine, index + 1);
        }
        const float c = total.of[0] * about.scale * each, level = CENTRED ? total.of[CENTRED] * each : 0.0f;
        make_opaque(weight);
        if (index < own) {
            const bool ahead = index + STAGES < own, sum_ahead = index + SUM_STAGES < own;
#pragma unroll
            for (int k = 0; k < ROW_VECTORS; ++k) {
                W* x_buffer = xs + stage * STAGE;
                W* dy_buffer = dys + stage * STAGE;
                W* ds_buffer = dss + sum_stage * STAGE;
                float a[WIDTH], d[WIDTH], g[WIDTH], s[WIDTH];
                widen(x_buffer[k * THREADS], a);
                widen(dy_buffer[k * THREADS], d);
                widen(weight[k], g);
                if (ADDS) {
                    widen(ds_buffer[k * THREADS], s);
                }
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    const float hat = (CENTRED ? a[e] - about.mean : a[e]) * about.scale;
                    const float inner = fmaf(-hat, c, g[e] * d[e]) - level;
                    dw[k][e] = fmaf(d[e], hat, dw[k][e]);
                    if (CENTRED) {
                        db[k][e] += d[e];
                    }
                    a[e] = ADDS ? fmaf(inner, about.scale, s[e]) : inner * about.scale;
                }
                row.store(dx, k, narrow<T>(a));
                if (ahead) {
                    fetch(x, x_buffer, k, STAGES * stride);
                    fetch(dy, dy_buffer, k, STAGES * stride);
                }
                if (ADDS && sum_ahead) {
                    fetch(ds, ds_buffer, k, SUM_STAGES * stride);
                }
            }
        }
        close_group();
        row.start += stride;
        about = after;
        after = later;
        stage = next_stage;
        sum_stage = sum_stage + 1 == SUM_STAGES ? 0 : sum_stage + 1;
    }

    float* part = parts + (long long)cluster * pitch;
    const long long all = (long long)clusters * pitch;
    if (ROW_ROWS > 1) {
        store_combined_part(row, part, dw, reinterpret_cast<float*>(memory));
        if (CENTRED) {
            store_combined_part(row, part + all, db, reinterpret_cast<float*>(memory));
        }
    } else {
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            store_part(row, part, k, dw[k]);
            if (CENTRED) {
                store_part(row, part + all, k, db[k]);
            }
        }
    }
}

// 2. Adds up the partial sums of dw, and of db where blockIdx.y is 1, in a fixed order. The first column of part i is i * shift % WIDTH behind
// its begin, as the first row of cluster i begins that far behind a vector, of which `shift` is n % WIDTH. Eight lanes of 16 bytes share 32 columns, 32
// groups of such lanes share the parts.
extern "C" __global__ void __launch_bounds__(256) sum_parts(
    const float* __restrict__ parts, T* __restrict__ dw, T* __restrict__ db, int count, int n, int pitch, int shift) {
    constexpr int LANES = 8, GROUPS = 32;
    __shared__ float4 sums[GROUPS][LANES];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, column = (blockIdx.x * LANES + lane) * 4;
    const float* from = parts + (long long)blockIdx.y * count * pitch + column;
    float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (column < n) {
#pragma unroll 4
        for (int i = group; i < count; i += GROUPS) {
            const float* at = from + (long long)i * pitch + i * shift % WIDTH;
            // Behind the last column, what is read is not used.
            const float4 v = shift == 0 ? *reinterpret_cast<const float4*>(at) : make_float4(at[0], at[1], at[2], at[3]);
            total = make_float4(total.x + v.x, total.y + v.y, total.z + v.z, total.w + v.w);
        }
    }
    sums[group][lane] = total;
    __syncthreads();
    const int mine = blockIdx.x * 32 + threadIdx.x;
    if (threadIdx.x < 32 && mine < n) {
        float whole = 0.0f;
#pragma unroll
        for (int i = 0; i < GROUPS; ++i) {
            whole += reinterpret_cast<const float*>(sums[i])[threadIdx.x];
        }
        (blockIdx.y ? db : dw)[mine] = from_float<T>(whole);
    }
}

// Rows of any length, element by element, so that rows may start anywhere.
constexpr int LONG_LANES = 512, DEEP = 8;
using Long = Row<T, LONG_LANES, 1, 1, 1, true>;

__device__ __forceinline__ float sum_of(const float (&v)[DEEP]) {
    return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

// 3. What the forward pass saves: each row's mean (CENTRED) and scale, and with ADDS the stored sum that was normalised. Not timed.
extern "C" __global__ void __launch_bounds__(LONG_LANES) row_statistics(
    const T* __restrict__ x, const T* __restrict__ r, T* __restrict__ s, float* __restrict__ mean, float* __restrict__ scale, long long m,
    int n, float eps) {
    Long row(m, n);
    float sums[DEEP] = {}, middle = 0.0f;
    for (int pass = CENTRED ? 0 : 1; pass < 2; ++pass) {
#pragma unroll
        for (int k = 0; k < DEEP; ++k) {
            sums[k] = 0.0f;
        }
        for (int from = threadIdx.x; from < n; from += LONG_LANES * DEEP) {
#pragma unroll
            for (int k = 0; k < DEEP; ++k) {
                const int i = from + k * LONG_LANES;
                if (i < n) {
                    float v = to_float(x[row.start + i]);
                    if (ADDS) {
                        const T stored = from_float<T>(v + to_float(r[row.start + i]));
                        s[row.start + i] = stored;
                        v = to_float(stored);
                    }
                    const float away = v - middle;
                    sums[k] = pass == 0 ? sums[k] + v : fmaf(away, away, sums[k]);
                }
            }
        }
        const float total = row.reduce(sum_of(sums), Add{}, 0.0f) / n;
        if (pass == 0) {
            middle = total;
        } else if (threadIdx.x == 0) {
            scale[row.row] = rsqrtf(total + eps);
            if (CENTRED) {
                mean[row.row] = middle;
            }
        }
    }
}

// 4. Rows that do not fit in a cluster of 16 blocks are read twice: this kernel computes their means mean(g x̂) and mean(g), …
extern "C" __global__ void __launch_bounds__(LONG_LANES) long_row_sums(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ dy, const float* __restrict__ mean,
    const float* __restrict__ scale, float* __restrict__ sums, long long m, int n) {
    Long row(m, n);
    const Statistics about = statistics_of(mean, scale, row.row);
    float products[DEEP] = {}, totals[DEEP] = {};
    for (int from = threadIdx.x; from < n; from += LONG_LANES * DEEP) {
#pragma unroll
        for (int k = 0; k < DEEP; ++k) {
            const int i = from + k * LONG_LANES;
            if (i < n) {
                const float g = to_float(dy[row.start + i]) * to_float(w[i]);
                products[k] = fmaf(g, to_float(x[row.start + i]) - about.mean, products[k]);
                totals[k] += g;
            }
        }
    }
    const float product = row.reduce(sum_of(products), Add{}, 0.0f), total = row.reduce(sum_of(totals), Add{}, 0.0f);
    if (threadIdx.x == 0) {
        sums[2 * row.row] = product * about.scale / n;
        sums[2 * row.row + 1] = CENTRED ? total / n : 0.0f;
    }
}

// … and this one dx and the sums of dw and db, in blocks that loop over the rows of their columns; gridDim.y blocks share the rows.
extern "C" __global__ void __launch_bounds__(256) long_row_columns(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ dy, const T* __restrict__ ds,
    const float* __restrict__ mean, const float* __restrict__ scale, const float* __restrict__ sums, T* __restrict__ dx,
    float* __restrict__ parts, long long m, int n, int pitch) {
    constexpr int LANES = 256, EACH = 4;
    const int first = blockIdx.x * LANES * EACH + threadIdx.x;
    float dw[EACH] = {}, db[EACH] = {}, weight[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        weight[k] = first + k * LANES < n ? to_float(w[first + k * LANES]) : 0.0f;
    }
    for (long long row = blockIdx.y; row < m; row += gridDim.y) {
        const Statistics about = statistics_of(mean, scale, row);
        const float c = sums[2 * row], level = sums[2 * row + 1];
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const int column = first + k * LANES;
            if (column < n) {
                const long long at = row * n + column;
                const float d = to_float(dy[at]), hat = (to_float(x[at]) - about.mean) * about.scale;
                const float inner = fmaf(-hat, c, d * weight[k]) - level;
                dw[k] = fmaf(d, hat, dw[k]);
                db[k] += d;
                dx[at] = from_float<T>(ADDS ? fmaf(inner, about.scale, to_float(ds[at])) : inner * about.scale);
            }
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int column = first + k * LANES;
        if (column < n) {
            parts[(long long)blockIdx.y * pitch + column] = dw[k];
            if (CENTRED) {
                parts[((long long)gridDim.y + blockIdx.y) * pitch + column] = db[k];
            }
        }
    }
}
