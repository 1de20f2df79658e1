// C (m, n) = A (m, k) B (k, n), row-major, on tensor cores with the instructions wmma: a block computes 128×128 elements, each of its eight warps 64×32 of
// them as 4×2 fragments of 16×16. Definitions:
//   ELEMENT         __nv_bfloat16, __half, or float: then the numbers are rounded to tf32
//   COPY_A, COPY_B  bytes of one load from A and B: the largest of 16, 8, 4 and 2 that divides the address of every row
#include "wmma.cuh"

constexpr int ROWS = 128, COLUMNS = 128, DEPTH = 32, THREADS = 256, SIZE = sizeof(ELEMENT);
constexpr int PAD = 8;  // elements; rows of a multiple of 128 bytes would begin in the same bank
constexpr int STEP = Wmma<ELEMENT>::DEPTH;
constexpr int TALL = 4, WIDE = 2;  // fragments of a warp

using Fragment = unsigned[Wmma<ELEMENT>::REGISTERS];

template <int BYTES> struct Unit;
template <> struct Unit<2> { using type = unsigned short; };
template <> struct Unit<4> { using type = unsigned; };
template <> struct Unit<8> { using type = uint2; };
template <> struct Unit<16> { using type = uint4; };

// A tile of HEIGHT × WIDTH elements to shared memory, BYTES at a time, with zeros where the matrix ends (after `rows` and `columns`).
template <int HEIGHT, int WIDTH, int BYTES>
__device__ __forceinline__ void load_tile(
    ELEMENT (&to)[HEIGHT][WIDTH + PAD], const ELEMENT* __restrict__ from, long long pitch, long long rows, long long columns) {
    using Vector = typename Unit<BYTES>::type;
    constexpr int EACH = BYTES / SIZE, ACROSS = WIDTH / EACH;
#pragma unroll
    for (int i = 0; i < HEIGHT * ACROSS / THREADS; ++i) {
        const int unit = i * THREADS + threadIdx.x, row = unit / ACROSS, column = unit % ACROSS * EACH;
        Vector vector = {};
        if (row < rows && column < columns) {
            vector = *reinterpret_cast<const Vector*>(from + row * pitch + column);
        }
        *reinterpret_cast<Vector*>(&to[row][column]) = vector;
    }
}

// To tf32, where the elements are fp32.
__device__ __forceinline__ void round_fragment(Fragment& fragment) {
    if constexpr (SIZE == 4) {
#pragma unroll
        for (unsigned& element : fragment) {
            element = rounded_to_tf32(element);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, COPY_A == 16 && COPY_B == 16 ? 2 : 1) matmul_wmma(
    const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, ELEMENT* __restrict__ c, long long m, long long n, long long k) {
    __shared__ __align__(32) ELEMENT a_tile[ROWS][DEPTH + PAD];
    __shared__ __align__(32) ELEMENT b_tile[DEPTH][COLUMNS + PAD];
    __shared__ __align__(32) float sums_of_warp[THREADS / 32][16][16];
    const int tiles_n = (n + COLUMNS - 1) / COLUMNS;
    const long long row = blockIdx.x / tiles_n * (long long)ROWS, column = blockIdx.x % tiles_n * (long long)COLUMNS;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row0 = warp / 4 * 64, column0 = warp % 4 * 32;

    float sums[TALL][WIDE][8] = {};
    for (long long depth = 0; depth < k; depth += DEPTH) {
        load_tile<ROWS, DEPTH, COPY_A>(a_tile, a + row * k + depth, k, m - row, k - depth);
        load_tile<DEPTH, COLUMNS, COPY_B>(b_tile, b + depth * n + column, n, k - depth, n - column);
        __syncthreads();
#pragma unroll
        for (int step = 0; step < DEPTH; step += STEP) {
            Fragment of_a[TALL], of_b[WIDE];
#pragma unroll
            for (int i = 0; i < TALL; ++i) {
                Wmma<ELEMENT>::load_a(of_a[i], &a_tile[row0 + 16 * i][step], DEPTH + PAD);
                round_fragment(of_a[i]);
            }
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
                Wmma<ELEMENT>::load_b(of_b[j], &b_tile[step][column0 + 16 * j], COLUMNS + PAD);
                round_fragment(of_b[j]);
            }
#pragma unroll
            for (int i = 0; i < TALL; ++i) {
#pragma unroll
                for (int j = 0; j < WIDE; ++j) {
                    Wmma<ELEMENT>::multiply_add(sums[i][j], of_a[i], of_b[j]);
                }
            }
        }
        __syncthreads();
    }

    // Which thread has which element of a fragment is not specified: it goes through shared memory, one fragment at a time. A thread stores every
    // second row of a column.
    const long long to_row = row + row0 + lane / 16, to_column = column + column0 + lane % 16;
    const int rows_left = min(m - to_row, 64LL), columns_left = min(n - to_column, 32LL);
    ELEMENT* to = c + to_row * n + to_column;
#pragma unroll
    for (int i = 0; i < TALL; ++i) {
#pragma unroll
        for (int j = 0; j < WIDE; ++j) {
            store_sums<STEP>(&sums_of_warp[warp][0][0], sums[i][j], 16);
            __syncwarp();
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                if (16 * i + 2 * e < rows_left && 16 * j < columns_left) {
                    to[(16 * i + 2 * e) * n + 16 * j] = static_cast<ELEMENT>(sums_of_warp[warp][lane / 16 + 2 * e][lane % 16]);
                }
            }
            __syncwarp();
        }
    }
}
