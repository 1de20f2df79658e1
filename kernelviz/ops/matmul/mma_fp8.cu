// Products of 8-bit floats (e4m3) by mma.sync, for every GPU from sm_89 on: C (m, n, bf16) = scales · A (m, k) Bᵀ (B: n, k), all row-major, with a
// pipeline of cp.async. Definitions:
//   ROWS, COLUMNS               tile of C that a block computes; with BLOCKS, COLUMNS is at most 128
//   STAGES                      tiles of A and B in shared memory, each 128 of K deep, 2 or more
//   WARP_ROWS, WARP_COLUMNS     warps of a block; each computes ROWS / WARP_ROWS × COLUMNS / WARP_COLUMNS elements
//   GROUP                       rows of tiles that are computed together, so that they find B in the L2
//   TWO_LEVEL                   1: the tensor core adds up 128 of K, and these sums are added in fp32
//   BLOCKS                      0: one scale for A and one for B; 1: one for each 128 of K of a row of A and for each 128×128 of B (needs TWO_LEVEL)
// Dynamic shared memory: STAGES × (ROWS + COLUMNS) × 128 bytes. K is a multiple of 16.
#include "mma_fp8.cuh"

constexpr int DEPTH = 128, STEP = 32, STEPS = DEPTH / STEP, UNIT = 16, UNITS_OF_ROW = DEPTH / UNIT;
constexpr int THREADS = 32 * WARP_ROWS * WARP_COLUMNS;
constexpr int ROWS_OF_WARP = ROWS / WARP_ROWS, COLUMNS_OF_WARP = COLUMNS / WARP_COLUMNS;
constexpr int TALL = ROWS_OF_WARP / 16, WIDE = COLUMNS_OF_WARP / 8;  // products of 16×8 elements of a warp
constexpr int A_BYTES = ROWS * DEPTH, STAGE_BYTES = A_BYTES + COLUMNS * DEPTH;
static_assert(ROWS_OF_WARP % 16 == 0 && COLUMNS_OF_WARP % 16 == 0, "a warp reads fragments of 16 rows of A and of B");
static_assert(ROWS * UNITS_OF_ROW % THREADS == 0 && COLUMNS * UNITS_OF_ROW % THREADS == 0, "all threads copy as much");
static_assert(TWO_LEVEL || !BLOCKS, "only sums of one block of K can be scaled");

// Where a byte of a row is in shared memory: the eight chunks of 16 bytes of a row are permuted, so that eight rows of one chunk (ldmatrix) and the
// eight chunks of one row (copies) touch each bank once.
__device__ __forceinline__ unsigned place(int row, int byte) {
    return row * DEPTH + (byte ^ row % 8 * 16);
}

// Begin to copy a tile of HEIGHT rows of which so many rows and bytes of a row are in the matrix, with zeros for the others.
template <int HEIGHT> __device__ __forceinline__ void copy_tile(unsigned to, const char* from, long long pitch, int rows, int bytes) {
    const int byte = threadIdx.x % UNITS_OF_ROW * UNIT;
#pragma unroll
    for (int i = 0; i < HEIGHT * UNITS_OF_ROW / THREADS; ++i) {
        const int row = threadIdx.x / UNITS_OF_ROW + i * (THREADS / UNITS_OF_ROW);
        copy_async<UNIT>(to + place(row, byte), from + row * pitch + byte, row < rows && byte < bytes);
    }
}

struct Fragments {
    unsigned a[TALL][4], b[WIDE][2];

    // Those of one step of a stage; `a_row` and `b_row`: the first ones of the warp.
    __device__ __forceinline__ void load(unsigned stage, int step, int a_row, int b_row) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < TALL; ++i) {
            // Rows 0 to 7 and 8 to 15 of the left 16 bytes, then of the right ones.
            load_matrices(a[i], stage + place(a_row + 16 * i + lane % 16, step * STEP + lane / 16 * 16));
        }
#pragma unroll
        for (int j = 0; j < WIDE; j += 2) {
            // The left and the right 16 bytes of rows 0 to 7, then of rows 8 to 15.
            unsigned four[4];
            load_matrices(four, stage + A_BYTES + place(b_row + 8 * j + lane / 16 * 8 + lane % 8, step * STEP + lane / 8 % 2 * 16));
            b[j][0] = four[0], b[j][1] = four[1], b[j + 1][0] = four[2], b[j + 1][1] = four[3];
        }
    }
    __device__ __forceinline__ void multiply_add(float (&sums)[TALL][WIDE][4]) const {
#pragma unroll
        for (int i = 0; i < TALL; ++i) {
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
                multiply_add_fp8(sums[i][j], a[i], b[j]);
            }
        }
    }
};

// Add what the tensor core added up of one block of K to the sums, times the scales of that block, and begin again with zeros.
__device__ __forceinline__ void add_block(
    float (&sums)[TALL][WIDE][4], float (&of_block)[TALL][WIDE][4], const float* __restrict__ a_scales, float b_scale, int row0, int m) {
#pragma unroll
    for (int i = 0; i < TALL; ++i) {
        float scale[2] = {1.0f, 1.0f};
        if (BLOCKS) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                scale[half] = __ldg(a_scales + min(row0 + 16 * i + 8 * half, m - 1)) * b_scale;
            }
        }
#pragma unroll
        for (int j = 0; j < WIDE; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                sums[i][j][e] = fmaf(of_block[i][j][e], scale[e / 2], sums[i][j][e]);
                of_block[i][j][e] = 0.0f;
            }
        }
    }
}

__device__ __forceinline__ void store(const float (&sums)[TALL][WIDE][4], __nv_bfloat16* __restrict__ c, float scale, int row0, int column0, int m, int n) {
#pragma unroll
    for (int part = 0; part < TALL * 2; ++part) {
        const int row = row0 + 8 * part;
        if (row < m) {
            __nv_bfloat16* to = c + (long long)row * n;
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
                const int column = column0 + 8 * j;
                const float low = sums[part / 2][j][part % 2 * 2] * scale, high = sums[part / 2][j][part % 2 * 2 + 1] * scale;
                if (n % 2 == 0 && column < n) {
                    *reinterpret_cast<unsigned*>(to + column) = TensorCore<__nv_bfloat16>::pair(low, high);
                } else if (column < n) {
                    to[column] = __nv_bfloat16(low);
                    if (column + 1 < n) {
                        to[column + 1] = __nv_bfloat16(high);
                    }
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) matmul_mma_fp8(
    const char* __restrict__ a, const char* __restrict__ b, const float* __restrict__ a_scales, const float* __restrict__ b_scales,
    __nv_bfloat16* __restrict__ c, int m, int n, int k) {
    // Tiles in groups of GROUP rows of tiles, column by column within a group.
    const int tiles_m = (m + ROWS - 1) / ROWS, tiles_n = (n + COLUMNS - 1) / COLUMNS;
    const int in_group = GROUP * tiles_n, first = int(blockIdx.x) / in_group * GROUP;
    const int group_rows = min(GROUP, tiles_m - first), number = int(blockIdx.x) % in_group;
    const int row = (first + number % group_rows) * ROWS, column = number / group_rows * COLUMNS;
    const char* a_tile = a + (long long)row * k;
    const char* b_tile = b + (long long)column * k;
    const int stages = (k + DEPTH - 1) / DEPTH;

    const unsigned shared = shared_memory();
    int copied = 0;  // stages whose copies have begun
    const auto copy_next = [&] {
        if (copied < stages) {
            const unsigned to = shared + copied % STAGES * STAGE_BYTES;
            const int done = copied * DEPTH;
            copy_tile<ROWS>(to, a_tile + done, k, m - row, k - done);
            copy_tile<COLUMNS>(to + A_BYTES, b_tile + done, k, n - column, k - done);
        }
        ++copied;
        commit_copies();  // also an empty group: the waits count groups
    };
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        copy_next();
    }

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int a_row = warp / WARP_COLUMNS * ROWS_OF_WARP, b_row = warp % WARP_COLUMNS * COLUMNS_OF_WARP;
    const int row0 = row + a_row + lane / 4, column0 = column + b_row + lane % 4 * 2;  // of the thread's first sum
    float sums[TALL][WIDE][4] = {};
    float of_block[TALL][WIDE][4] = {};
    Fragments fragments[2];
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    fragments[0].load(shared, 0, a_row, b_row);
    for (int stage = 0; stage < stages; ++stage) {
        float b_scale = 1.0f;
        if (BLOCKS) {
            b_scale = __ldg(b_scales + (long long)(column / 128) * stages + stage);
        }
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (step == STEPS - 1) {
                // The next stage has arrived for all threads, and nobody reads the one before it any more: it is filled again at step 0.
                wait_for_copies<STAGES - 2>();
                __syncthreads();
            }
            const int read = step == STEPS - 1 ? stage + 1 : stage;
            fragments[(step + 1) % 2].load(shared + read % STAGES * STAGE_BYTES, (step + 1) % STEPS, a_row, b_row);
            if (step == 0) {
                copy_next();
            }
            fragments[step % 2].multiply_add(TWO_LEVEL ? of_block : sums);
        }
        if (TWO_LEVEL) {
            add_block(sums, of_block, a_scales + (long long)stage * m, b_scale, row0, m);
        }
    }
    const float scale = BLOCKS ? 1.0f : __ldg(a_scales) * __ldg(b_scales);
    store(sums, c, scale, row0, column0, m, n);
}
