// C (m, n) = A (m, k) B (k, n), row-major, with mma.sync, ldmatrix and a pipeline of cp.async. Definitions:
//   ELEMENT                     __nv_bfloat16, __half, or float: then the numbers are rounded to tf32
//   ROWS, COLUMNS               tile of C that a block computes
//   DEPTH                       columns of A, and rows of B, in one stage of the pipeline
//   STAGES                      tiles of A and of B in shared memory, 2 or more
//   WARP_ROWS, WARP_COLUMNS     warps of a block; each computes ROWS / WARP_ROWS × COLUMNS / WARP_COLUMNS elements
//   GROUP                       rows of tiles that are computed together, so that they find B in the L2
//   COPY_A, COPY_B, STORE       bytes of one access to A, B and C: the largest of 16, 8, 4 and 2 that divides the address of every row
// Dynamic shared memory: STAGES × (ROWS × DEPTH + DEPTH × COLUMNS) elements, or the tile of C if that is larger.
#include "mma.cuh"

constexpr int SIZE = sizeof(ELEMENT);
constexpr bool TF32 = SIZE == 4;
constexpr int THREADS = 32 * WARP_ROWS * WARP_COLUMNS;
constexpr int ROWS_OF_WARP = ROWS / WARP_ROWS, COLUMNS_OF_WARP = COLUMNS / WARP_COLUMNS;
constexpr int STEP = 32 / SIZE;  // depth of one mma.sync
constexpr int STEPS = DEPTH / STEP;
constexpr int TALL = ROWS_OF_WARP / 16, WIDE = COLUMNS_OF_WARP / 8;  // products of 16×8 elements of a warp
constexpr int A_PITCH = DEPTH * SIZE, B_PITCH = COLUMNS * SIZE;
constexpr int A_BYTES = ROWS * A_PITCH, STAGE_BYTES = A_BYTES + DEPTH * B_PITCH;
static_assert(ROWS_OF_WARP % 16 == 0 && COLUMNS_OF_WARP % (TF32 ? 32 : 16) == 0, "a warp reads fragments of whole columns");
static_assert((COLUMNS_OF_WARP & (COLUMNS_OF_WARP - 1)) == 0, "columns are told apart by bits of the address");
static_assert(STEPS % 2 == 0 && STAGES >= 2 && B_PITCH % 128 == 0, "two sets of fragments, two stages, rows of whole lines");

// Where a byte of a row is in shared memory. The chunks of 16 bytes of a row are permuted, so that the accesses of eight threads at a time touch each
// of the 32 banks once: eight rows of one chunk (ldmatrix), or eight neighbouring chunks of one row (copies).
template <int PITCH> __device__ __forceinline__ unsigned swizzled(int row, int byte) {
    constexpr int CHUNKS = PITCH / 16;
    return row * PITCH + (byte ^ (CHUNKS >= 8 ? row % 8 : row / (8 / CHUNKS) % CHUNKS) * 16);
}
// B of fp32 is read without ldmatrix: eight threads read two neighbouring chunks of each of four rows.
__device__ __forceinline__ unsigned place_of_b(int row, int byte) {
    return TF32 ? row * B_PITCH + (byte ^ row % 4 * 32) : swizzled<B_PITCH>(row, byte);
}
template <bool IS_A> __device__ __forceinline__ unsigned place(int row, int byte) {
    return IS_A ? swizzled<A_PITCH>(row, byte) : place_of_b(row, byte);
}

// Copies the tiles of A or of B to shared memory, one after the other along K, UNIT bytes at a time, with zeros where the matrix ends.
template <bool IS_A, int UNIT> struct Copier {
    static constexpr int ACROSS = (IS_A ? A_PITCH : B_PITCH) / UNIT, HEIGHT = IS_A ? ROWS : DEPTH, UNITS = HEIGHT * ACROSS;
    static constexpr int ROW_STEP = THREADS / ACROSS;  // rows between two units of a thread; 0: a thread has several of a row
    const char* from;
    long long pitch;

    __device__ __forceinline__ Copier(const char* tile, long long pitch) : from(tile + row() * pitch + byte()), pitch(pitch) {}
    static __device__ __forceinline__ int row() { return ROW_STEP ? threadIdx.x / ACROSS : 0; }
    static __device__ __forceinline__ int byte() { return threadIdx.x % (ROW_STEP ? ACROSS : THREADS) * UNIT; }

    // Begin to copy the next tile, of which so many rows and bytes of a row are in the matrix. Elements of 2 bytes are copied at once.
    __device__ __forceinline__ void copy(unsigned to, int rows, int bytes) {
        constexpr int OF_ROW = ROW_STEP ? 1 : ACROSS / THREADS;  // units of a thread in one row
        static_assert(ROW_STEP ? THREADS % ACROSS == 0 : ACROSS % THREADS == 0, "whole rows");
        constexpr int STEP_OF_ROWS = ROW_STEP ? ROW_STEP : 1, ROWS_OF_THREAD = (HEIGHT + STEP_OF_ROWS - 1) / STEP_OF_ROWS;
        const int row0 = row(), byte0 = byte();
#pragma unroll
        for (int i = 0; i < ROWS_OF_THREAD; ++i) {
            const int row = row0 + i * STEP_OF_ROWS;
            if (HEIGHT % STEP_OF_ROWS == 0 || row < HEIGHT) {
#pragma unroll
                for (int j = 0; j < OF_ROW; ++j) {
                    const int byte = byte0 + j * THREADS * UNIT;
                    const bool valid = row < rows && byte < bytes;
                    const char* source = from + j * THREADS * UNIT;
                    if constexpr (UNIT == 2) {
                        store_shared(to + place<IS_A>(row, byte), valid ? *reinterpret_cast<const unsigned short*>(source) : (unsigned short)0);
                    } else {
                        copy_async<UNIT>(to + place<IS_A>(row, byte), source, valid);
                    }
                }
            }
            from += STEP_OF_ROWS * pitch;
        }
        from += IS_A ? A_PITCH - ROWS_OF_THREAD * STEP_OF_ROWS * pitch : (DEPTH - ROWS_OF_THREAD * STEP_OF_ROWS) * pitch;
    }
};

// Where a thread reads its fragments from, relative to a stage: the steps and products after the first one are constants further.
struct Lane {
    unsigned a, b;

    // `row0` and `column0`: where the warp's part of the tile begins.
    __device__ __forceinline__ Lane(int row0, int column0) {
        const int lane = threadIdx.x % 32;
        // Matrices of A: rows 0 to 7 and 8 to 15 of the left 16 bytes, then of the right ones. Of B: depths 0 to 7 and 8 to 15 of eight columns, then
        // of the next eight; or, of fp32, four columns at depth lane % 4.
        a = swizzled<A_PITCH>(row0 + lane % 16, lane / 16 * 16);
        b = A_BYTES + (TF32 ? place_of_b(lane % 4, column0 * SIZE + lane / 4 * 16) : place_of_b(lane % 16, column0 * SIZE + lane / 16 * 16));
    }
};

struct Fragments {
    unsigned a[TALL][4], b[WIDE][2];

    // Those of one step of a stage.
    __device__ __forceinline__ void load(unsigned stage, int step, const Lane& lane) {
#pragma unroll
        for (int i = 0; i < TALL; ++i) {
            load_matrices(a[i], stage + (lane.a ^ step * 32) + 16 * i * A_PITCH);
        }
#pragma unroll
        for (int j = 0; j < WIDE; j += TF32 ? 4 : 2) {
            const unsigned from = stage + (lane.b ^ j * 8 * SIZE) + step * STEP * B_PITCH;
            if constexpr (TF32) {
                // Four columns of B for four products: product j has columns j, j + 4, j + 8, … of 32. `store` puts them back in order.
                uint4 upper, lower;
                load_shared(upper, from);
                load_shared(lower, from + 4 * B_PITCH);
                b[j][0] = upper.x, b[j + 1][0] = upper.y, b[j + 2][0] = upper.z, b[j + 3][0] = upper.w;
                b[j][1] = lower.x, b[j + 1][1] = lower.y, b[j + 2][1] = lower.z, b[j + 3][1] = lower.w;
            } else {
                unsigned four[4];
                load_matrices_transposed(four, from);
                b[j][0] = four[0], b[j][1] = four[1], b[j + 1][0] = four[2], b[j + 1][1] = four[3];
            }
        }
    }

    __device__ __forceinline__ void multiply_add(float (&sums)[TALL][WIDE][4]) {
        if constexpr (TF32) {
#pragma unroll
            for (int i = 0; i < TALL * 4; ++i) {
                a[i / 4][i % 4] = rounded_to_tf32(a[i / 4][i % 4]);
            }
#pragma unroll
            for (int j = 0; j < WIDE * 2; ++j) {
                b[j / 2][j % 2] = rounded_to_tf32(b[j / 2][j % 2]);
            }
        }
#pragma unroll
        for (int i = 0; i < TALL; ++i) {
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
                TensorCore<ELEMENT>::multiply_add(sums[i][j], a[i], b[j]);
            }
        }
    }
};

template <int BYTES> struct Unit;
template <> struct Unit<2> { using type = unsigned short; };
template <> struct Unit<4> { using type = unsigned; };
template <> struct Unit<8> { using type = uint2; };
template <> struct Unit<16> { using type = uint4; };

// 16-bit elements: through shared memory, so that a warp writes whole rows. `rows` and `bytes` of the tile are inside of C.
template <typename T> __device__ __forceinline__ void store(
    const float (&sums)[TALL][WIDE][4], char* to, long long pitch, int rows, int bytes, unsigned tile, int row0, int column0) {
    const int lane = threadIdx.x % 32;
    if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int i = 0; i < TALL; ++i) {
#pragma unroll
            for (int j = 0; j < WIDE; ++j) {
                const int row = row0 + 16 * i + lane / 4, byte = (column0 + 8 * j) * SIZE + lane % 4 * 4;
                store_shared(tile + swizzled<B_PITCH>(row, byte), TensorCore<T>::pair(sums[i][j][0], sums[i][j][1]));
                store_shared(tile + swizzled<B_PITCH>(row + 8, byte), TensorCore<T>::pair(sums[i][j][2], sums[i][j][3]));
            }
        }
        __syncthreads();
        constexpr int ACROSS = B_PITCH / STORE, UNITS = ROWS * ACROSS;
#pragma unroll 8
        for (int first = 0; first < UNITS; first += THREADS) {
            const int unit = first + threadIdx.x, row = unit / ACROSS, byte = unit % ACROSS * STORE;
            typename Unit<STORE>::type value;
            load_shared(value, tile + swizzled<B_PITCH>(row, byte));
            if (row < rows && byte < bytes) {
                *reinterpret_cast<typename Unit<STORE>::type*>(to + row * pitch + byte) = value;
            }
        }
    } else {
        // fp32: a thread has eight neighbouring columns, the first four and the last four of each quadruple of products.
#pragma unroll
        for (int part = 0; part < TALL * 2; ++part) {
            const int row = row0 + part * 8 + lane / 4;
            if (row < rows) {
#pragma unroll
                for (int four = 0; four < WIDE / 2; ++four) {
                    const int j = four / 2 * 4, e = part % 2 * 2 + four % 2;
                    const int byte = (column0 + 8 * j + lane % 4 * 8 + four % 2 * 4) * SIZE;
                    const float numbers[4] = {
                        sums[part / 2][j][e], sums[part / 2][j + 1][e], sums[part / 2][j + 2][e], sums[part / 2][j + 3][e]};
                    if constexpr (STORE == 16) {
                        if (byte < bytes) {
                            *reinterpret_cast<float4*>(to + row * pitch + byte) = make_float4(numbers[0], numbers[1], numbers[2], numbers[3]);
                        }
                    } else {
#pragma unroll
                        for (int one = 0; one < 4; ++one) {
                            if (byte + one * SIZE < bytes) {
                                *reinterpret_cast<float*>(to + row * pitch + byte + one * SIZE) = numbers[one];
                            }
                        }
                    }
                }
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    matmul_mma(const char* __restrict__ a, const char* __restrict__ b, char* __restrict__ c, long long m, long long n, long long k) {
    // Tiles in groups of GROUP rows of tiles, column by column within a group.
    const int tiles_m = (m + ROWS - 1) / ROWS, tiles_n = (n + COLUMNS - 1) / COLUMNS;
    const int in_group = GROUP * tiles_n, first = int(blockIdx.x) / in_group * GROUP;
    const int group_rows = min(GROUP, tiles_m - first), number = int(blockIdx.x) % in_group;
    const long long row = (first + number % group_rows) * (long long)ROWS, column = number / group_rows * (long long)COLUMNS;

    const long long a_pitch = k * SIZE, b_pitch = n * SIZE;
    Copier<true, COPY_A> copier_of_a(a + row * a_pitch, a_pitch);
    Copier<false, COPY_B> copier_of_b(b + column * SIZE, b_pitch);
    const int rows = int(min(m - row, (long long)ROWS)), bytes = int(min(n - column, (long long)COLUMNS)) * SIZE;
    const int tiles = int((k + DEPTH - 1) / DEPTH);
    int loaded = 0, writes = 0;  // tiles whose copies have begun, and where the stage of the next one begins

    const unsigned shared = shared_memory();
    const auto copy_next = [&] {
        if (loaded < tiles) {
            const int depth = int(min(k - loaded * (long long)DEPTH, (long long)DEPTH));
            copier_of_a.copy(shared + writes, rows, depth * SIZE);
            copier_of_b.copy(shared + writes + A_BYTES, depth, bytes);
        }
        ++loaded;
        writes = writes + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : writes + STAGE_BYTES;
        commit_copies();  // also an empty group: the waits count groups
    };
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        copy_next();
    }

    const int warp = threadIdx.x / 32;
    const int row0 = warp / WARP_COLUMNS * ROWS_OF_WARP, column0 = warp % WARP_COLUMNS * COLUMNS_OF_WARP;
    float sums[TALL][WIDE][4] = {};
    Fragments fragments[2];
    const Lane lane(row0, column0);
    int reads = 0;  // the stage that is read
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    fragments[0].load(shared + reads, 0, lane);
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            if (step == STEPS - 1) {
                // The next stage has arrived for all threads, and nobody reads the one before it any more: it is filled again at step 0.
                reads = reads + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : reads + STAGE_BYTES;
                wait_for_copies<STAGES - 2>();
                __syncthreads();
            }
            fragments[(step + 1) % 2].load(shared + reads, (step + 1) % STEPS, lane);
            if (step == 0) {
                copy_next();
            }
            fragments[step % 2].multiply_add(sums);
        }
    }
    __syncthreads();  // other warps may still read the fragments after the last ones, which nobody uses, from where C goes
    store<ELEMENT>(sums, c + row * b_pitch + column * SIZE, b_pitch, rows, bytes, shared, row0, column0);
}
