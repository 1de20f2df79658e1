// C (m, n) = A (m, k) B (k, n), row-major, of at most 64 rows, with mma.sync while cp.async streams B through shared memory once. Columns of C fill
// the 16 rows of the instruction, and rows of C its 8 columns: C transposed is B transposed times A transposed, so that few rows waste little
// work. Definitions:
//   ELEMENT                     __nv_bfloat16 or __half
//   ROWS                        m, rounded up to 8, 16, 32, 48 or 64
//   COLUMNS                     columns of C that a block computes
//   DEPTH                       rows of B, and columns of A, in one stage of the pipeline
//   STAGES                      tiles of A and of B in shared memory, 2 or more
//   WARPS_ACROSS, WARPS_DEEP    warps of a block along the columns, and along the depth of a stage
//   COPY_A, COPY_B, STORE       bytes of one access to A, B and C: the largest of 16, 8, 4 and 2 (C: of 8, 4 and 2) that divides every row's address
// blockIdx.x counts the tiles of C, then the parts of K. Dynamic shared memory: the stages, or the sums of WARPS_DEEP × ROWS × (COLUMNS + 4) if those
// are larger.
#include "skinny.cuh"

constexpr int SIZE = 2, THREADS = 32 * WARPS_ACROSS * WARPS_DEEP;
constexpr int COLUMNS_OF_WARP = COLUMNS / WARPS_ACROSS, STEPS_OF_WARP = DEPTH / 16 / WARPS_DEEP;
constexpr int TALL = COLUMNS_OF_WARP / 16, WIDE = ROWS / 8;  // products of 16 columns and 8 rows of C
constexpr int A_PITCH = DEPTH * SIZE, B_PITCH = COLUMNS * SIZE;
constexpr int A_BYTES = ROWS * A_PITCH, STAGE_BYTES = A_BYTES + DEPTH * B_PITCH;
constexpr int SUM_PITCH = (COLUMNS + 4) * 4, SUM_BYTES = ROWS * SUM_PITCH;  // 4 more: so a warp's stores of a fragment touch each bank once
static_assert(ROWS % 8 == 0 && COLUMNS_OF_WARP % 16 == 0 && STEPS_OF_WARP >= 1 && STAGES >= 2, "whole products, two stages");
static_assert((COLUMNS_OF_WARP & (COLUMNS_OF_WARP - 1)) == 0 && (STEPS_OF_WARP & (STEPS_OF_WARP - 1)) == 0, "told apart by bits of addresses");
static_assert(A_PITCH >= 64 && B_PITCH % 128 == 0, "rows of A of 64 bytes, of B of whole lines");

// Where a byte of a row is in shared memory. The chunks of 16 bytes of a row are permuted, so that the accesses of eight threads at a time touch each
// of the 32 banks once: eight rows of one chunk (ldmatrix), or eight neighbouring chunks of one row (copies).
template <int PITCH> __device__ __forceinline__ unsigned swizzled(int row, int byte) {
    constexpr int CHUNKS = PITCH / 16;
    return row * PITCH + (byte ^ (CHUNKS >= 8 ? row % 8 : row / (8 / CHUNKS) % CHUNKS) * 16);
}

// Begin to copy a tile, of which so many rows and bytes of a row are in the matrix, with zeros for the rest. Accesses of 2 bytes are done at once.
template <int HEIGHT, int PITCH, int UNIT> __device__ __forceinline__ void copy_tile(
    unsigned to, const char* from, long long pitch, int rows, int bytes) {
    constexpr int ACROSS = PITCH / UNIT, UNITS = HEIGHT * ACROSS;
#pragma unroll
    for (int first = 0; first < UNITS; first += THREADS) {
        const int unit = first + threadIdx.x;
        if (UNITS % THREADS == 0 || unit < UNITS) {
            const int row = THREADS % ACROSS == 0 ? first / ACROSS + threadIdx.x / ACROSS : unit / ACROSS;
            const int byte = (THREADS % ACROSS == 0 ? threadIdx.x % ACROSS : unit % ACROSS) * UNIT;
            const bool valid = row < rows && byte < bytes;
            const char* source = from + row * pitch + byte;
            if constexpr (UNIT == 2) {
                store_shared(to + swizzled<PITCH>(row, byte), valid ? *reinterpret_cast<const unsigned short*>(source) : (unsigned short)0);
            } else {
                copy_async<UNIT>(to + swizzled<PITCH>(row, byte), source, valid);
            }
        }
    }
}

// Where a thread reads its fragments from, relative to a stage: the steps and products after the first one are constants further.
struct Lane {
    unsigned a, b;

    __device__ __forceinline__ Lane(int column0, int step0) {
        const int lane = threadIdx.x % 32;
        // Matrices of A: the left and the right 16 bytes of rows 0 to 7, then of rows 8 to 15 (of 8 rows: the same again).
        a = swizzled<A_PITCH>(lane % 8 + (WIDE > 1 ? lane / 16 * 8 : 0), step0 * 32 + lane / 8 % 2 * 16);
        // Matrices of B: depths 0 to 7 of columns 0 to 7 and 8 to 15, then depths 8 to 15.
        b = A_BYTES + swizzled<B_PITCH>(step0 * 16 + lane / 16 * 8 + lane % 8, column0 * SIZE + lane / 8 % 2 * 16);
    }
};

__device__ __forceinline__ void multiply_add(float (&sums)[TALL][WIDE][4], unsigned stage, int step, const Lane& lane) {
    unsigned columns[TALL][4], rows[(WIDE + 1) / 2][4];
#pragma unroll
    for (int i = 0; i < TALL; ++i) {
        load_matrices_transposed(columns[i], stage + (lane.b ^ i * 32) + step * 16 * B_PITCH);
    }
#pragma unroll
    for (int j = 0; j < (WIDE + 1) / 2; ++j) {
        load_matrices(rows[j], stage + (lane.a ^ step * 32) + j * 16 * A_PITCH);
    }
#pragma unroll
    for (int i = 0; i < TALL; ++i) {
#pragma unroll
        for (int j = 0; j < WIDE; ++j) {
            const unsigned of_rows[2] = {rows[j / 2][j % 2 * 2], rows[j / 2][j % 2 * 2 + 1]};
            TensorCore<ELEMENT>::multiply_add(sums[i][j], columns[i], of_rows);
        }
    }
}

// Four neighbouring columns of C, of which so many are inside.
__device__ __forceinline__ void store_columns(char* to, float4 four, int inside) {
    const unsigned low = TensorCore<ELEMENT>::pair(four.x, four.y), high = TensorCore<ELEMENT>::pair(four.z, four.w);
    if constexpr (STORE == 8) {
        if (inside > 0) {
            *reinterpret_cast<uint2*>(to) = uint2{low, high};
        }
    } else if constexpr (STORE == 4) {
        if (inside > 0) *reinterpret_cast<unsigned*>(to) = low;
        if (inside > 2) *reinterpret_cast<unsigned*>(to + 4) = high;
    } else {
        unsigned short* numbers = reinterpret_cast<unsigned short*>(to);
        if (inside > 0) numbers[0] = static_cast<unsigned short>(low);
        if (inside > 1) numbers[1] = static_cast<unsigned short>(low >> 16);
        if (inside > 2) numbers[2] = static_cast<unsigned short>(high);
        if (inside > 3) numbers[3] = static_cast<unsigned short>(high >> 16);
    }
}

// `workspace` and `arrived` are used if there are several parts of K: room for the sums of all parts of all tiles, and for each tile a counter that
// is zero before and after the launch. `part_depth`: rows of B of a part, a multiple of DEPTH.
extern "C" __global__ void __launch_bounds__(THREADS) matmul_skinny(
    const char* __restrict__ a, const char* __restrict__ b, char* __restrict__ c, float4* workspace, unsigned* arrived, long long m, long long n,
    long long k, long long part_depth, int parts) {
    const unsigned tiles_of_c = unsigned((n + COLUMNS - 1) / COLUMNS), tile_of_c = blockIdx.x % tiles_of_c, part = blockIdx.x / tiles_of_c;
    const long long column = tile_of_c * (long long)COLUMNS;
    const int columns = int(min(n - column, (long long)COLUMNS));
    const long long first = part * part_depth, depth = min(k - first, part_depth), a_pitch = k * SIZE, b_pitch = n * SIZE;
    const int tiles = int((depth + DEPTH - 1) / DEPTH);
    const char *from_a = a + first * SIZE, *from_b = b + first * b_pitch + column * SIZE;
    const unsigned shared = shared_memory();
    int loaded = 0, writes = 0;  // tiles whose copies have begun, and where the stage of the next one begins
    const auto copy_next = [&] {
        if (loaded < tiles) {
            const int inside = int(min(depth - loaded * (long long)DEPTH, (long long)DEPTH));
            copy_tile<DEPTH, B_PITCH, COPY_B>(shared + writes + A_BYTES, from_b, b_pitch, inside, columns * SIZE);
            copy_tile<ROWS, A_PITCH, COPY_A>(shared + writes, from_a, a_pitch, int(m), inside * SIZE);
            from_a += A_PITCH;
            from_b += DEPTH * b_pitch;
        }
        ++loaded;
        writes = writes + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : writes + STAGE_BYTES;
        commit_copies();  // also an empty group: the waits count groups
    };
#pragma unroll 1
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        copy_next();
    }

    const int warp = threadIdx.x / 32, across = warp % WARPS_ACROSS, deep = warp / WARPS_ACROSS;
    const Lane lane(across * COLUMNS_OF_WARP, deep * STEPS_OF_WARP);
    float sums[TALL][WIDE][4] = {};
    int reads = 0;  // where the stage begins that is read
#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
        // This tile has arrived for all threads, and nobody reads the one before it any more: its stage is filled again.
        wait_for_copies<STAGES - 2>();
        __syncthreads();
        copy_next();
#pragma unroll
        for (int step = 0; step < STEPS_OF_WARP; ++step) {
            multiply_add(sums, shared + reads, step, lane);
        }
        reads = reads + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : reads + STAGE_BYTES;
    }

    // Sums through shared memory: those of the warps along the depth are added in their order, and rows of C become rows again.
    __syncthreads();
    const int group = threadIdx.x % 32 / 4, in_group = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < TALL; ++i) {
#pragma unroll
        for (int j = 0; j < WIDE; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int row = 8 * j + 2 * in_group + e % 2, at = across * COLUMNS_OF_WARP + 16 * i + group + e / 2 * 8;
                store_shared(shared + deep * SUM_BYTES + row * SUM_PITCH + at * 4, __float_as_uint(sums[i][j][e]));
            }
        }
    }
    __syncthreads();
    constexpr int ACROSS = COLUMNS / 4, UNITS = ROWS * ACROSS;
    float4* of_tile = workspace + (long long)tile_of_c * parts * UNITS;
#pragma unroll 4
    for (int first_unit = 0; first_unit < UNITS; first_unit += THREADS) {
        const int unit = first_unit + threadIdx.x;
        if (UNITS % THREADS != 0 && unit >= UNITS) {
            break;
        }
        const int row = unit / ACROSS, at = unit % ACROSS * 4;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int i = 0; i < WARPS_DEEP; ++i) {
            uint4 more;
            load_shared(more, shared + i * SUM_BYTES + row * SUM_PITCH + at * 4);
            sum = make_float4(
                sum.x + __uint_as_float(more.x), sum.y + __uint_as_float(more.y), sum.z + __uint_as_float(more.z), sum.w + __uint_as_float(more.w));
        }
        if (parts > 1) {
            of_tile[part * UNITS + unit] = sum;
        } else if (row < m) {
            store_columns(c + row * b_pitch + (column + at) * SIZE, sum, columns - at);
        }
    }
    if (parts > 1 && is_last_to_arrive(arrived + tile_of_c, parts)) {
#pragma unroll 2
        for (int unit = threadIdx.x; unit < UNITS; unit += THREADS) {
            const int row = unit / ACROSS, at = unit % ACROSS * 4;
            if (row < m) {
                store_columns(c + row * b_pitch + (column + at) * SIZE, sum_of_parts(of_tile + unit, UNITS, parts), columns - at);
            }
        }
    }
}
