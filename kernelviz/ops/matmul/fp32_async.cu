// The fp32 product C (m, n) = A (m, k) B (k, n), row-major, by tiles that cp.async copies ahead of the multiply-adds.
//
// BM × BN: elements of C that a block computes, in steps of BK along K. TM × TN: elements that a thread computes (8×8, 8×16 or 16×8):
// 16×8 need 6 loads of 16 bytes from shared memory for 128 multiply-adds, 8×8 need 4 for 64. STRETCH: see multiply().
// STAGES: tiles of A and B in shared memory, of which STAGES - 1 are copied while one is read. GROUP: rows of tiles that blocks which
// run together share, so that L2 serves both factors. VECTORS is 1 if rows of B and C begin at multiples of 16 bytes.
// SPLIT is 1 if blockIdx.y takes a part of K. OFFSET: the type of offsets within a tile of A or B, unsigned where 32 bits suffice.
#include "async_copy.cuh"

constexpr int THREADS = BM * BN / (TM * TN);
constexpr int LANES_M = TM < TN ? 8 : 4, LANES_N = 32 / LANES_M;
constexpr int WARP_M = LANES_M * TM, WARP_N = LANES_N * TN;
// Of a multiprocessor's registers, 128 sums a thread leave room for 256 threads, 64 for 512; a block of one or two warps spent more of
// them on copies and would spill, so there are fewer of these.
constexpr int RESIDENT_THREADS = TM * TN > 64 ? 256 : THREADS > 64 ? 512 : 384;
constexpr int BLOCKS = RESIDENT_THREADS > THREADS ? RESIDENT_THREADS / THREADS : 1;
// A tile of A is stored transposed. Its rows are 16 bytes longer than needed, so that the copies of 8 elements of 4 rows, which a warp
// makes at once, go to 32 different banks.
constexpr int A_PITCH = BM + 4;
constexpr int A_FLOATS = BK * A_PITCH, STAGE_FLOATS = A_FLOATS + BK * BN;
constexpr int B_WIDTH = VECTORS ? 4 : 1;
constexpr int A_ROWS = BM * 8 / THREADS, A_COPIES = A_ROWS * (BK / 8), B_COPIES = BK * BN / B_WIDTH / THREADS;
static_assert(BM % WARP_M == 0 && BN % WARP_N == 0 && BK % 8 == 0 && STAGES >= 2);
static_assert(BM * 8 % THREADS == 0 && BK * BN % (B_WIDTH * THREADS) == 0);

// What one thread copies of each tile. Rows of A and columns of B outside of the matrices are replaced by the last ones: what is
// computed of them is not stored. The first tile is the one that may be shorter than BK, and ends with zeros.
struct Copies {
    const float *a, *b;  // where the next tile begins; the same for all threads
    OFFSET a_offset[A_ROWS], b_offset[B_COPIES];
    long long n;

    __device__ __forceinline__ Copies(
        const float* a_matrix, const float* b_matrix, long long row0, long long column0, long long start, long long m, long long n,
        long long k)
        : a(a_matrix + row0 * k + start), b(b_matrix + start * n + column0), n(n) {
        const int t = threadIdx.x;
        const int last_row = (int)min((long long)BM, m - row0) - 1, last_column = (int)min((long long)BN, n - column0) - B_WIDTH;
#pragma unroll
        for (int i = 0; i < A_ROWS; ++i) {
            a_offset[i] = (OFFSET)min(t / 8 + i * (THREADS / 8), last_row) * (OFFSET)k + t % 8;
        }
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i) {
            const int at = (i * THREADS + t) * B_WIDTH;
            b_offset[i] = (OFFSET)(at / BN) * (OFFSET)n + min(at % BN, last_column);
        }
    }

    // The next tile, to `stage`, if it is `wanted`. I: the copy to begin with.
    template <int I = 0>
    __device__ __forceinline__ void copy(float* stage, bool wanted) const {
        const int t = threadIdx.x;
        if constexpr (I < A_COPIES) {
            constexpr int ROW = I / (BK / 8), DEPTH = I % (BK / 8) * 8;
            copy_async<4, DEPTH * A_PITCH + ROW * (THREADS / 8), DEPTH>(stage + t % 8 * A_PITCH + t / 8, a + a_offset[ROW], wanted);
        } else {
            constexpr int B = I - A_COPIES;
            copy_async<4 * B_WIDTH, A_FLOATS + B * THREADS * B_WIDTH, 0>(stage + t * B_WIDTH, b + b_offset[B], wanted);
        }
        if constexpr (I + 1 < A_COPIES + B_COPIES) {
            copy<I + 1>(stage, wanted);
        }
    }

    // The first tile, of which `depth` elements along K are in the matrices.
    __device__ __forceinline__ void copy_first(float* stage, int depth) const {
        const int t = threadIdx.x;
#pragma unroll
        for (int i = 0; i < A_COPIES; ++i) {
            const int row = i / (BK / 8), element = i % (BK / 8) * 8 + t % 8;
            const bool inside = element < depth;
            copy_async_or_zero<4>(
                stage + element * A_PITCH + t / 8 + row * (THREADS / 8), inside ? a + a_offset[row] + element - t % 8 : a, inside);
        }
#pragma unroll
        for (int i = 0; i < B_COPIES; ++i) {
            const int at = (i * THREADS + t) * B_WIDTH;
            const bool inside = at / BN < depth;
            copy_async_or_zero<4 * B_WIDTH>(stage + A_FLOATS + at, inside ? b + b_offset[i] : b, inside);
        }
    }

    __device__ __forceinline__ void advance(int depth) {
        a += depth;
        b += depth * n;
    }
};

// A thread's elements lie in groups of 4×4, which are LANES_M or LANES_N groups apart, so that the 16-byte loads of neighbouring
// threads are of neighbouring addresses. The bits of the lane number are mixed as in the register tiles of maxas (NervanaSystems):
// each half of a warp reads 8 different vectors of the one factor and 2 of the other.
struct Place {
    int row, column;

    __device__ __forceinline__ Place() {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const int four = lane % 2 + lane / 16 * 2, eight = lane / 2 % 8;
        row = warp / (BN / WARP_N) * WARP_M + (LANES_M == 8 ? eight : four) * 4;
        column = warp % (BN / WARP_N) * WARP_N + (LANES_M == 8 ? four : eight) * 4;
    }
};

// Row r or column j of a thread, counted from its first one.
__device__ __forceinline__ constexpr int spread(int index, int lanes) { return index / 4 * lanes * 4 + index % 4; }

struct Parts {
    float a[TM], b[TN];

    __device__ __forceinline__ void load(const float* a_tile, const float* b_tile, int depth) {
#pragma unroll
        for (int r = 0; r < TM; r += 4) {
            *reinterpret_cast<float4*>(a + r) =
                *reinterpret_cast<const float4*>(a_tile + depth * A_PITCH + spread(r, LANES_M));
        }
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            *reinterpret_cast<float4*>(b + j) =
                *reinterpret_cast<const float4*>(b_tile + depth * BN + spread(j, LANES_N));
        }
    }
};

// STRETCH columns of a row, then the same columns of the next row, back and forth: so each multiply-add has an element of A or of B in
// common with the one before it. The compiler lets such an operand come from the reuse cache (`.reuse` in SASS), and puts the other two into
// different banks of registers. How often it can depends on the order, which is why there are several.
__device__ __forceinline__ void multiply(float (*sum)[TN], const Parts& parts) {
#pragma unroll
    for (int stretch = 0; stretch < TN / STRETCH; ++stretch) {
#pragma unroll
        for (int i = 0; i < TM; ++i) {
#pragma unroll
            for (int j = 0; j < STRETCH; ++j) {
                const int r = stretch % 2 ? TM - 1 - i : i;
                const int column = stretch * STRETCH + (i % 2 ? STRETCH - 1 - j : j);
                sum[r][column] += parts.a[r] * parts.b[column];
            }
        }
    }
}

__device__ __forceinline__ void store_four(float* row, long long column, long long columns, float4 four) {
#if VECTORS
    if (column < columns) {
        *reinterpret_cast<float4*>(row + column) = four;
    }
#else
    if (column < columns) row[column] = four.x;
    if (column + 1 < columns) row[column + 1] = four.y;
    if (column + 2 < columns) row[column + 2] = four.z;
    if (column + 3 < columns) row[column + 3] = four.w;
#endif
}

// Four sums in the order in which they are stored: with neighbours exchanged. A vector lies in consecutive registers, so the compiler keeps
// the sum of an even column in an odd register, and the element of B of the same column, which came as a vector, in an even one. The
// registers that a multiply-add reads are then of both banks. With sums in the order of the columns, nearly all of them conflict.
__device__ __forceinline__ float4 exchanged(const float* four) { return make_float4(four[1], four[0], four[3], four[2]); }

// Adds up what the blocks of all parts of K have computed of a tile. The last block to arrive adds them in the order of the parts, so
// that the result does not depend on which one that is. Returns whether this block is the last one.
__device__ __forceinline__ bool add_parts(float (*sum)[TN], float* parts, unsigned* arrived, unsigned long long tile) {
    __shared__ bool is_last;
    const int t = threadIdx.x;
    float4* of_tile = reinterpret_cast<float4*>(parts) + tile * gridDim.y * (BM * BN / 4) + t;
#pragma unroll
    for (int i = 0; i < TM * TN / 4; ++i) {
        const float* four = &sum[i / (TN / 4)][i % (TN / 4) * 4];
        of_tile[((unsigned long long)blockIdx.y * (TM * TN / 4) + i) * THREADS] = exchanged(four);
    }
    __threadfence();
    __syncthreads();
    if (t == 0) {
        is_last = atomicAdd(arrived + tile, 1u) == gridDim.y - 1;
    }
    __syncthreads();
    if (!is_last) {
        return false;
    }
    __threadfence();
#pragma unroll
    for (int i = 0; i < TM * TN / 4; ++i) {
        float* four = &sum[i / (TN / 4)][i % (TN / 4) * 4];
        four[0] = four[1] = four[2] = four[3] = 0.0f;
        for (unsigned part = 0; part < gridDim.y; ++part) {
            const float4 more = of_tile[((unsigned long long)part * (TM * TN / 4) + i) * THREADS];
            four[1] += more.x;
            four[0] += more.y;
            four[3] += more.z;
            four[2] += more.w;
        }
    }
    if (t == 0) {
        arrived[tile] = 0;  // for the next launch
    }
    return true;
}

// One block a tile and part of K. `parts` and `arrived` are used with SPLIT only: room for the tiles of all parts, and a counter for
// each tile that is zero before and after the launch. `part_depth`: elements of K of a part, a multiple of BK.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) matmul_async_copy(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, float* parts, unsigned* arrived, long long m,
    long long n, long long k, long long part_depth) {
    const unsigned across = (unsigned)((n + BN - 1) / BN), down = (unsigned)((m + BM - 1) / BM);
    const unsigned group = blockIdx.x / (GROUP * across), in_group = blockIdx.x % (GROUP * across);
    const unsigned rows = min(down - group * GROUP, (unsigned)GROUP);
    const long long row0 = (long long)(group * GROUP + in_group % rows) * BM;
    const long long column0 = (long long)(in_group / rows) * BN;
    const long long start = SPLIT ? blockIdx.y * part_depth : 0;
    const int depth = (int)(SPLIT ? min(part_depth, k - start) : k);
    const int tiles = (depth + BK - 1) / BK;

    float* shared = dynamic_shared_memory();
    Copies copies(a, b, row0, column0, start, m, n, k);
    const int first_depth = depth - (tiles - 1) * BK;
    copies.copy_first(shared, first_depth);
    copies.advance(first_depth);
    commit_copies();
#pragma unroll
    for (int stage = 1; stage < STAGES - 1; ++stage) {
        copies.copy(shared + stage * STAGE_FLOATS, stage < tiles);
        copies.advance(BK);
        commit_copies();
    }

    const Place place;
    float sum[TM][TN] = {};
    Parts now[2];
    int reading = 0, writing = (STAGES - 1) * STAGE_FLOATS;
    const float *a_place = shared + place.row, *b_place = shared + A_FLOATS + place.column;
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    now[0].load(a_place, b_place, 0);
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        const float *a_tile = a_place + reading, *b_tile = b_place + reading;
#pragma unroll
        for (int i = 0; i < BK; ++i) {
            if (i == BK - 1) {  // the next tile has arrived, and every thread has read this one to its end
                wait_for_copies<STAGES - 2>();
                __syncthreads();
                writing = reading;
                reading = reading == (STAGES - 1) * STAGE_FLOATS ? 0 : reading + STAGE_FLOATS;
                a_tile = a_place + reading;
                b_tile = b_place + reading;
            }
            now[(i + 1) % 2].load(a_tile, b_tile, (i + 1) % BK);
            if (i == 0) {
                copies.copy(shared + writing, tile + STAGES - 1 < tiles);
                copies.advance(BK);
                commit_copies();
            }
            multiply(sum, now[i % 2]);
        }
    }
#if SPLIT
    const unsigned long long tile = (unsigned long long)(row0 / BM) * across + column0 / BN;
    if (!add_parts(sum, parts, arrived, tile)) {
        return;
    }
#endif
    // Sums pass through shared memory, each thread's own, for the sake of the order of their registers (see exchanged()).
    __syncthreads();
    float4* own = reinterpret_cast<float4*>(shared) + threadIdx.x;
#pragma unroll
    for (int r = 0; r < TM; ++r) {
        const long long row = row0 + place.row + spread(r, LANES_M);
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            own[j / 4 * THREADS] = exchanged(sum[r] + j);
        }
        __syncwarp();
        if (row < m) {
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const float4 four = own[j / 4 * THREADS];
                store_four(
                    c + row * n, column0 + place.column + spread(j, LANES_N), n, make_float4(four.y, four.x, four.w, four.z));
            }
        }
        __syncwarp();
    }
}
