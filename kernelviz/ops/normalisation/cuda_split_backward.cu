// Backward passes of `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of a few long rows, in two launches: several blocks share
// the sums of a row (split_rows.cuh), then each block has a range of columns and loops over all rows, so that dw and db are summed in
// registers, in the order of the rows. Formulas as in cuda_backward.cu.
#include "conversions.cuh"
#include "row_beside.cuh"
#include "split_rows.cuh"

using T = ELEMENT;
using W = Vec16<T>;
using R = Row<T, ROW_LANES, ROW_VECTORS, 1, 1, ROW_ALIGNED>;
constexpr int WIDTH = W::WIDTH;

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

// 1. What the forward pass saves. Not timed. Of a part of a row Σ (x - mean)², where `sums` are the partial sums of x that an earlier launch
// left and with CENTRED and no `sums`, Σ x. With ADDS, x is the stored sum of two tensors, which the launch stores.
extern "C" __global__ void __launch_bounds__(ROW_LANES, 1024 / ROW_LANES) statistics_parts(
    const T* __restrict__ x, const T* __restrict__ r, T* __restrict__ s, const float* __restrict__ sums, float* __restrict__ partials,
    long long m, int n, int parts) {
    R row(m, n);
    const Piece piece(row, parts);
    const bool squares = !CENTRED || sums != nullptr;
    const float mean = CENTRED && squares ? merged(row, sums, parts, Add{}, 0.0f) / n : 0.0f;
    float mine = 0.0f;
    row.rank = piece.first;
    for (int i = 0; i < piece.count; ++i, row.rank += piece.step) {
        W v[ROW_VECTORS], of_r[ROW_VECTORS];
        row.load_or_zero(x, v);
        if (ADDS) {
            row.load_or_zero(r, of_r);
        }
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float a[WIDTH], b[WIDTH];
            widen(v[k], a);
            if (ADDS) {
                widen(of_r[k], b);
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    a[e] += b[e];
                }
                const W stored = narrow<T>(a);
                row.store(s, k, stored);
                widen(stored, a);
            }
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                const float away = !CENTRED || row.holds(k, e) ? a[e] - mean : 0.0f;
                mine = squares ? fmaf(away, away, mine) : mine + away;
            }
        }
    }
    const float all = row.reduce(mine, Add{}, 0.0f);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = all;
    }
}

// A block a row merges them.
extern "C" __global__ void __launch_bounds__(ROW_LANES) statistics_of_rows(
    const float* __restrict__ sums, const float* __restrict__ squares, float* __restrict__ mean, float* __restrict__ scale, long long m,
    int n, int parts, float eps) {
    R row(m, n);
    const float middle = CENTRED ? merged(row, sums, parts, Add{}, 0.0f) / n : 0.0f;
    const float square = merged(row, squares, parts, Add{}, 0.0f) / n;
    if (threadIdx.x == 0) {
        scale[row.row] = rsqrtf(square + eps);
        if (CENTRED) {
            mean[row.row] = middle;
        }
    }
}

// 2. The sums of a part of a row.
extern "C" __global__ void __launch_bounds__(ROW_LANES, 1024 / ROW_LANES) backward_parts(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ dy, const float* __restrict__ mean,
    Sums* __restrict__ partials, long long m, int n, int parts) {
    R row(m, n);
    const Piece piece(row, parts);
    const float middle = CENTRED ? mean[row.row] : 0.0f;
    Sums mine[2] = {};  // two chains of sums
    row.rank = piece.first;
    for (int i = 0; i < piece.count; ++i, row.rank += piece.step) {
        W of_x[ROW_VECTORS], of_dy[ROW_VECTORS];
        row.load_or_zero(x, of_x);
        row.load_or_zero(dy, of_dy);
#pragma unroll
        for (int k = 0; k < ROW_VECTORS; ++k) {
            float a[WIDTH], d[WIDTH], g[WIDTH];
            widen(of_x[k], a);
            widen(of_dy[k], d);
            widen(beside(row, w, k), g);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                g[e] *= d[e];
                mine[e % 2].of[0] = fmaf(g[e], CENTRED ? a[e] - middle : a[e], mine[e % 2].of[0]);
                if (CENTRED) {
                    mine[e % 2].of[CENTRED] += g[e];
                }
            }
        }
    }
    const Sums all = row.reduce(AddSums()(mine[0], mine[1]), AddSums{}, Sums{});
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = all;
    }
}

// 3. dx, dw and db. A thread has a vector of columns where all rows begin on 16 bytes, else single ones, so that its columns are the same in
// all rows.
constexpr int COLUMN_LANES = 256, AT_ONCE = 2;  // rows that are loaded together
constexpr int EACH = ROW_ALIGNED ? WIDTH : 4, COLUMNS = COLUMN_LANES * EACH;

struct Singles {
    T e[EACH];
};
template <bool VECTORS> struct As {  // 16-byte vectors
    using Held = W;
    static __device__ __forceinline__ void widened(const W& held, float (&out)[WIDTH]) { widen(held, out); }
    static __device__ __forceinline__ W rounded(const float (&v)[WIDTH]) { return narrow<T>(v); }
};
template <> struct As<false> {
    using Held = Singles;
    static __device__ __forceinline__ void widened(const Singles& held, float (&out)[EACH]) {
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            out[e] = to_float(held.e[e]);
        }
    }
    static __device__ __forceinline__ Singles rounded(const float (&v)[EACH]) {
        Singles held;
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            held.e[e] = from_float<T>(v[e]);
        }
        return held;
    }
};
using Form = As<ROW_ALIGNED>;
using Held = Form::Held;

// The columns of a thread; those from n on do not exist.
struct Columns {
    int first, n;
    __device__ __forceinline__ int at(int e) const { return ROW_ALIGNED ? first + e : first + e * COLUMN_LANES; }

    __device__ __forceinline__ Held load(const T* __restrict__ from) const {
        Held held;
        if (ROW_ALIGNED) {
            *reinterpret_cast<uint4*>(&held) = first < n ? *reinterpret_cast<const uint4*>(from + first) : make_uint4(0, 0, 0, 0);
        } else {
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                held.e[e] = at(e) < n ? from[at(e)] : T(0.0f);
            }
        }
        return held;
    }

    __device__ __forceinline__ void store(T* __restrict__ to, const float (&v)[EACH]) const {
        const Held held = Form::rounded(v);
        if (ROW_ALIGNED) {
            if (first < n) {
                *reinterpret_cast<uint4*>(to + first) = *reinterpret_cast<const uint4*>(&held);
            }
        } else {
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                if (at(e) < n) {
                    to[at(e)] = held.e[e];
                }
            }
        }
    }
};

struct Terms {
    float mean, scale, c, level;  // mean and scale of a row, mean(g x̂), mean(g)
};

extern "C" __global__ void __launch_bounds__(COLUMN_LANES, 4) backward_columns(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ dy, const T* __restrict__ ds, const float* __restrict__ mean,
    const float* __restrict__ scale, const Sums* __restrict__ partials, T* __restrict__ dx, T* __restrict__ dw, T* __restrict__ db,
    int m, int n, int parts) {
    extern __shared__ __align__(16) unsigned char memory[];
    Terms* terms = reinterpret_cast<Terms*>(memory);
    // The ends of the parts of rows first: what the launch before read last is in L2 still.
    const int blocks = (n + COLUMNS - 1) / COLUMNS, of_part = (blocks + parts - 1) / parts;
    const int block = (int)(blockIdx.x % parts) * of_part + of_part - 1 - (int)(blockIdx.x / parts);
    if (block >= blocks) {
        return;
    }
    const Columns columns = {block * COLUMNS + (int)threadIdx.x * (ROW_ALIGNED ? WIDTH : 1), n};
    const Held weight = columns.load(w);
    Held of_x[AT_ONCE], of_dy[AT_ONCE], of_ds[AT_ONCE];
    const auto load_rows = [&](int from) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            if (from + i < m) {
                const long long start = (long long)(from + i) * n;
                of_x[i] = columns.load(x + start);
                of_dy[i] = columns.load(dy + start);
                if (ADDS) {
                    of_ds[i] = columns.load(ds + start);
                }
            }
        }
    };
    load_rows(0);  // in flight while the parts of the rows' sums arrive
    for (int row = threadIdx.x / 32; row < m; row += COLUMN_LANES / 32) {
        Sums total = {};
        for (int i = threadIdx.x % 32; i < parts; i += 32) {
            total = AddSums()(total, partials[row * parts + i]);
        }
        total = warp_reduce<32>(total, AddSums{});
        if (threadIdx.x % 32 == 0) {
            const float each = 1.0f / n, of_row = scale[row];
            terms[row] = {CENTRED ? mean[row] : 0.0f, of_row, total.of[0] * of_row * each, CENTRED ? total.of[CENTRED] * each : 0.0f};
        }
    }
    __syncthreads();

    float sum[EACH] = {}, level[EACH] = {};  // of dw and db
    for (int from = 0; from < m; from += AT_ONCE) {
        if (from > 0) {
            load_rows(from);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            if (from + i < m) {
                const Terms about = terms[from + i];
                float a[EACH], d[EACH], g[EACH], s[EACH];
                Form::widened(of_x[i], a);
                Form::widened(of_dy[i], d);
                Form::widened(weight, g);
                if (ADDS) {
                    Form::widened(of_ds[i], s);
                }
#pragma unroll
                for (int e = 0; e < EACH; ++e) {
                    const float hat = (CENTRED ? a[e] - about.mean : a[e]) * about.scale;
                    const float inner = fmaf(-hat, about.c, g[e] * d[e]) - about.level;
                    sum[e] = fmaf(d[e], hat, sum[e]);
                    if (CENTRED) {
                        level[e] += d[e];
                    }
                    a[e] = ADDS ? fmaf(inner, about.scale, s[e]) : inner * about.scale;
                }
                columns.store(dx + (long long)(from + i) * n, a);
            }
        }
    }
    columns.store(dw, sum);
    if (CENTRED) {
        columns.store(db, level);
    }
}
