// C (m, n) = A (m, k) B (k, n), row-major, of at most 8 rows, with ordinary multiply-adds. Its time is that of reading B once. Definitions:
//   ELEMENT          __nv_bfloat16 or __half
//   ROWS             m
//   LANES            threads of a warp that share a row of B, 8 columns each: a block computes 8 LANES columns. The others take other rows
//   WARPS            of a block; they share the rows of B
//   DEPTH            neighbouring rows of B that a thread loads before it multiplies any of them
//   COPY_A, COPY_B   bytes of one access to A and B: the largest of 16, 8, 4 and 2 that divides the address of every row
// blockIdx.x counts the tiles of C, then the parts of K.
#include "skinny.cuh"

constexpr int SIZE = 2, EACH = 8, THREADS = 32 * WARPS;
constexpr int COLUMNS = EACH * LANES, GROUPS = 32 / LANES, SLICES = WARPS * GROUPS;
constexpr int STEP = SLICES * DEPTH;  // rows of B that a block reads at a time
constexpr int PIECES = 16 / COPY_B;
static_assert(DEPTH % 2 == 0 && LANES >= 4, "registers of two numbers; accesses of at least 64 bytes of a row");

template <int BYTES> struct Access;
template <> struct Access<2> { using type = unsigned short; };
template <> struct Access<4> { using type = unsigned; };
template <> struct Access<8> { using type = uint2; };
template <> struct Access<16> { using type = uint4; };

// 8 columns of one row of B. `offsets`: bytes of each access, relative to the tile.
__device__ __forceinline__ void load_columns(unsigned (&bits)[4], const char* row, const int (&offsets)[PIECES]) {
    using Piece = typename Access<COPY_B>::type;
    alignas(16) Piece pieces[PIECES];
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        load_once(pieces[i], row + offsets[i]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        bits[i] = reinterpret_cast<const unsigned*>(pieces)[i];
    }
}

// DEPTH neighbouring numbers of one row of A. All warps of an SM read the same ones, most from L1.
__device__ __forceinline__ void load_factors(unsigned (&bits)[DEPTH / 2], const char* from) {
    constexpr int BYTES = COPY_A < DEPTH * SIZE ? COPY_A : DEPTH * SIZE, COUNT = DEPTH * SIZE / BYTES;
    using Piece = typename Access<BYTES>::type;
    alignas(16) Piece pieces[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        pieces[i] = reinterpret_cast<const Piece*>(from)[i];
    }
#pragma unroll
    for (int i = 0; i < DEPTH / 2; ++i) {
        bits[i] = reinterpret_cast<const unsigned*>(pieces)[i];
    }
}

// Of DEPTH neighbouring rows of B, 8 columns of each, and the numbers of A that they are multiplied by.
struct Batch {
    unsigned b[DEPTH][4], a[ROWS][DEPTH / 2];

    // Adds rows 2 PAIR and 2 PAIR + 1.
    __device__ __forceinline__ void multiply_add(float (&sums)[ROWS][EACH], int pair) const {
        float factors[2][ROWS];
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            Halves<ELEMENT>::split(a[row][pair], factors[0][row], factors[1][row]);
        }
#pragma unroll
        for (int one = 0; one < 2; ++one) {
            float columns[EACH];
#pragma unroll
            for (int i = 0; i < EACH / 2; ++i) {
                Halves<ELEMENT>::split(b[2 * pair + one][i], columns[2 * i], columns[2 * i + 1]);
            }
#pragma unroll
            for (int row = 0; row < ROWS; ++row) {
#pragma unroll
                for (int column = 0; column < EACH; ++column) {
                    sums[row][column] += factors[one][row] * columns[column];
                }
            }
        }
    }
};

// Where a thread reads its next batch.
struct Source {
    const char *a, *b;
    long long a_pitch, b_pitch;
    int offsets[PIECES];

    __device__ __forceinline__ void load_row(Batch& batch, int depth) const { load_columns(batch.b[depth], b + depth * b_pitch, offsets); }
    __device__ __forceinline__ void load_a(unsigned (&to)[ROWS][DEPTH / 2]) const {
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            load_factors(to[row], a + row * a_pitch);
        }
    }
    __device__ __forceinline__ void advance() {
        a += STEP * SIZE;
        b += STEP * b_pitch;
    }

    // Adds so many batches. As soon as two rows were used, the same two of the next batch are asked for, so that nearly DEPTH loads are always in flight.
    __device__ __forceinline__ void add(float (&sums)[ROWS][EACH], int batches) {
        if (batches < 1) {
            return;
        }
        Batch batch;
#pragma unroll
        for (int depth = 0; depth < DEPTH; ++depth) {
            load_row(batch, depth);
        }
        load_a(batch.a);
        advance();
#pragma unroll 1
        for (int i = 1; i < batches; ++i) {
            unsigned next[ROWS][DEPTH / 2];
            load_a(next);
#pragma unroll
            for (int pair = 0; pair < DEPTH / 2; ++pair) {
                batch.multiply_add(sums, pair);
                load_row(batch, 2 * pair);
                load_row(batch, 2 * pair + 1);
            }
#pragma unroll
            for (int j = 0; j < ROWS * DEPTH / 2; ++j) {
                batch.a[j / (DEPTH / 2)][j % (DEPTH / 2)] = next[j / (DEPTH / 2)][j % (DEPTH / 2)];
            }
            advance();
        }
#pragma unroll
        for (int pair = 0; pair < DEPTH / 2; ++pair) {
            batch.multiply_add(sums, pair);
        }
    }

    // Adds the first `left` rows of a batch, fewer than DEPTH.
    __device__ __forceinline__ void add_some(float (&sums)[ROWS][EACH], int left) const {
#pragma unroll 1
        for (int depth = 0; depth < left; ++depth) {
            Batch batch = {};
            load_columns(batch.b[0], b + depth * b_pitch, offsets);
#pragma unroll
            for (int row = 0; row < ROWS; ++row) {
                batch.a[row][0] = reinterpret_cast<const unsigned short*>(a + row * a_pitch)[depth];
            }
            batch.multiply_add(sums, 0);  // the second row is zero
        }
    }
};

// `workspace` and `arrived` are used if there are several parts of K: room for the sums of all parts of all tiles, and for each tile a counter that
// is zero before and after the launch. `part_depth`: rows of B of a part.
extern "C" __global__ void __launch_bounds__(THREADS) matmul_gemv(
    const char* __restrict__ a, const char* __restrict__ b, ELEMENT* __restrict__ c, float* workspace, unsigned* arrived, long long n, long long k,
    long long part_depth, int parts) {
    __shared__ __align__(16) float of_warps[WARPS][COLUMNS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, slice = warp * GROUPS + lane / LANES;
    const unsigned tiles = unsigned((n + COLUMNS - 1) / COLUMNS), tile = blockIdx.x % tiles, part = blockIdx.x / tiles;
    const long long column = tile * (long long)COLUMNS;
    const int columns = int(min(n - column, (long long)COLUMNS));
    const long long first = part * part_depth, end = min(k, first + part_depth);
    const long long a_pitch = k * SIZE, b_pitch = n * SIZE;

    const long long row = first + slice * DEPTH;
    Source source{a + row * SIZE, b + row * b_pitch + column * SIZE, a_pitch, b_pitch};
    // Columns after the last one are replaced by it: what is computed of them is not stored.
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        source.offsets[i] = min(lane % LANES * EACH + i * (COPY_B / SIZE), columns - COPY_B / SIZE) * SIZE;
    }
    float sums[ROWS][EACH] = {};
    const long long rows = end - row;  // the last batch may be shorter than DEPTH
    const int batches = rows < DEPTH ? 0 : int((rows - DEPTH) / STEP) + 1;
    source.add(sums, batches);
    if (const long long left = rows - batches * (long long)STEP; left > 0) {
        source.add_some(sums, int(min(left, (long long)DEPTH)));
    }

#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
#pragma unroll
            for (int mask = LANES; mask < 32; mask *= 2) {
                sums[i][j] = sum_of_two_lanes(sums[i][j], mask);
            }
        }
    }
    float* of_tile = workspace + (long long)tile * parts * (ROWS * COLUMNS);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        if (i > 0) {
            __syncthreads();
        }
        if (lane < LANES) {
#pragma unroll
            for (int j = 0; j < EACH; j += 4) {
                *reinterpret_cast<float4*>(&of_warps[warp][lane * EACH + j]) =
                    make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
            }
        }
        __syncthreads();
#pragma unroll
        for (int j0 = 0; j0 < COLUMNS; j0 += THREADS) {
            if (const int j = j0 + threadIdx.x; j < columns) {
                float sum = 0.0f;
#pragma unroll
                for (int one = 0; one < WARPS; ++one) {
                    sum += of_warps[one][j];
                }
                if (parts == 1) {
                    c[i * n + column + j] = ELEMENT(sum);
                } else {
                    of_tile[(part * ROWS + i) * COLUMNS + j] = sum;
                }
            }
        }
    }
    if (parts > 1 && is_last_to_arrive(arrived + tile, parts)) {
#pragma unroll 1
        for (int j = threadIdx.x; j < ROWS * COLUMNS; j += THREADS) {
            if (j % COLUMNS < columns) {
                c[j / COLUMNS * n + column + j % COLUMNS] = ELEMENT(sum_of_parts(of_tile + j, ROWS * COLUMNS, parts));
            }
        }
    }
}
