// CUDA C++ kernels of `transpose`: y[n][m] = x[m][n]. ELEMENT is float, __half or __nv_bfloat16; no bits are changed, unless RELU is 1: then
// kernel 4 computes y[n][m] = max(x[m][n], 0).
#include "access_bits.cuh"
#include "vec16.cuh"
#if RELU
#include "relu.cuh"
#endif

#ifdef PADDING
// 1. One element a thread. A warp's loads are one line of x; its stores go to 32 rows of y.
extern "C" __global__ void __launch_bounds__(256) transpose_naive(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, long long m, long long n, unsigned tiles_n) {
    const long long row = (long long)(blockIdx.x / tiles_n) * 8 + threadIdx.x / 32;
    const long long column = (long long)(blockIdx.x % tiles_n) * 32 + threadIdx.x % 32;
    if (row < m && column < n) {
        y[column * m + row] = x[row * n + column];
    }
}

// 2. and 3. A tile of 32 x 32 elements: 8 rows of 32 threads, 4 elements a thread. Without padding the 32 elements of a column
// lie in one bank (16-bit elements: in two banks, which two columns share), so reading them is a 32-way bank conflict.
extern "C" __global__ void __launch_bounds__(256) transpose_tile(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, long long m, long long n, unsigned tiles_n) {
    __shared__ ELEMENT tile[32][32 + PADDING];
    const long long row0 = (long long)(blockIdx.x / tiles_n) * 32, column0 = (long long)(blockIdx.x % tiles_n) * 32;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = warp; i < 32; i += 8) {
        if (row0 + i < m && column0 + lane < n) {
            tile[i][lane] = x[(row0 + i) * n + column0 + lane];
        }
    }
    __syncthreads();
#pragma unroll
    for (int i = warp; i < 32; i += 8) {
        if (column0 + i < n && row0 + lane < m) {
            y[(column0 + i) * m + row0 + lane] = tile[lane][i];
        }
    }
}
#else
using W = Vec16<ELEMENT>;
constexpr int WIDTH = W::WIDTH;
constexpr int TILE_M = VECTORS_M * WIDTH, TILE_N = VECTORS_N * WIDTH, THREADS = VECTORS_M * VECTORS_N;
// ONE_TILE: each tile has all rows of x, so that none begins inside a row of y.
#ifndef ONE_TILE
#define ONE_TILE 0
#endif
// DOWN_FIRST: neighbouring blocks have neighbouring rows of x, for fewer rows than columns: what blocks that run at once read and write
// then lies closer together on both sides.
#ifndef DOWN_FIRST
#define DOWN_FIRST 0
#endif
constexpr int EXTRA = M_REST && !ONE_TILE ? 32 : 0;  // threads that read the block before the tile
// Elements at the ends of a row of y that one access stores: all rows of y begin and end at multiples of them.
constexpr int STEP = M_REST ? M_REST & -M_REST : WIDTH;
using Step = BitsOf<STEP * sizeof(ELEMENT)>::Type;
// Threads of a block, and how many blocks a multiprocessor must have registers for: three of 320 threads, where it would have two.
#if ONE_TILE && VECTORS_M * VECTORS_N > 256
#define BOUNDS THREADS + EXTRA, 3
#else
#define BOUNDS THREADS + EXTRA
#endif

// Index in shared memory of vector `vec` (of WIDTH rows of x) of the tile's column `column`. Swizzled, so that both the 8 threads
// that write vectors of 8 columns (WIDTH apart) and the 8 threads that read one column access all banks.
__device__ __forceinline__ int swizzled(int column, int vec) {
    return column * VECTORS_M + (vec ^ ((column + column / WIDTH) & (VECTORS_M < 8 ? VECTORS_M - 1 : 7)));
}

// Transposes a WIDTH x WIDTH block in registers: 4 x 4 elements of 4 bytes by renaming registers, 8 x 8 of 2 bytes by one
// permutation a register.
__device__ __forceinline__ void transpose_block(const uint4 (&in)[WIDTH], uint4 (&out)[WIDTH]) {
    const unsigned(*a)[4] = reinterpret_cast<const unsigned(*)[4]>(in);
    unsigned(*b)[4] = reinterpret_cast<unsigned(*)[4]>(out);
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if constexpr (sizeof(ELEMENT) == 4) {
                b[j][i] = a[i][j];
            } else {
                b[j][i] = __byte_perm(a[2 * i][j / 2], a[2 * i + 1][j / 2], j % 2 ? 0x7632 : 0x5410);
            }
        }
    }
}

// The WIDTH elements from index `first` on of two adjacent vectors; `first` is a constant where this is inlined.
__device__ __forceinline__ uint4 spliced(const uint4& low, const uint4& high, int first) {
    const unsigned parts[9] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w, 0u};
    const int at = first * (int)sizeof(ELEMENT) / 4, inside = first * (int)sizeof(ELEMENT) % 4;
    unsigned out[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        out[i] = inside ? __funnelshift_r(parts[at + i], parts[at + i + 1], 16) : parts[at + i];
    }
    return make_uint4(out[0], out[1], out[2], out[3]);
}

// Reads a block of x as row vectors and returns its column vectors. Rows that are not whole vectors start anywhere in one: row i of
// a block starts N_REST * i elements after a vector boundary (N_REST = n mod WIDTH). That is a compile-time constant, so a vector
// that spans two aligned ones is combined in registers. `last`: the last whole vector of x; nothing after it may be read.
__device__ __forceinline__ void read_block(
    const uint4* __restrict__ x, long long m, long long n, long long row0, long long column, long long last,
    uint4 (&out)[WIDTH]) {
    uint4 low[WIDTH], high[WIDTH], in[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        if (row0 + i >= 0 && row0 + i < m && column < n) {
            const long long vec = ((row0 + i) * n + column) / WIDTH;
            low[i] = x[min(vec, last)];
            if (i * N_REST % WIDTH) {
                high[i] = x[min(vec + 1, last)];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        in[i] = i * N_REST % WIDTH ? spliced(low[i], high[i], i * N_REST % WIDTH) : low[i];
    }
#if RELU
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        *reinterpret_cast<W*>(&in[i]) = relu(*reinterpret_cast<W*>(&in[i]));
    }
#endif
    transpose_block(in, out);
}

// 4. A tile of VECTORS_M x VECTORS_N blocks of WIDTH x WIDTH elements, one block a thread. A thread issues the loads of WIDTH vectors
// of WIDTH rows together, transposes them in registers and stores column vectors to shared memory, from which rows of y are
// written as vectors. Where rows of y are not whole vectors, column j of a block starts M_REST * j elements after a vector boundary
// of y. `tiles`: along the side that blocks follow first. Only whole vectors are written, except at the ends of a row of y: the first vector of a column gets its first elements from
// the block of rows before the tile, which an extra warp reads again. (With tiles that meet inside a vector, an H200 moved
// 2402 GB/s.)
extern "C" __global__ void __launch_bounds__(BOUNDS) transpose_vec16(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, long long m, long long n, int tiles) {
    __shared__ uint4 tile[TILE_N * VECTORS_M];
    __shared__ uint4 before[EXTRA ? TILE_N : 1];
    const unsigned slower = blockIdx.x / tiles, faster = blockIdx.x % tiles;
    const long long row0 = (long long)(DOWN_FIRST ? faster : slower) * TILE_M;
    const long long column0 = (long long)(DOWN_FIRST ? slower : faster) * TILE_N;
    const long long last = m * n / WIDTH - 1;
    const uint4* vectors = reinterpret_cast<const uint4*>(x);
    const int t = threadIdx.x;
    uint4 columns[WIDTH];
    if (t < THREADS) {
        const int across = t % VECTORS_N, down = t / VECTORS_N;
        read_block(vectors, m, n, row0 + down * WIDTH, column0 + across * WIDTH, last, columns);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            tile[swizzled(across * WIDTH + j, down)] = columns[j];
        }
    } else {
        for (int across = t - THREADS; across < VECTORS_N; across += 32) {
            read_block(vectors, m, n, row0 - WIDTH, column0 + across * WIDTH, last, columns);
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                before[across * WIDTH + j] = columns[j];
            }
        }
    }
    if constexpr (N_REST) {
        // The elements of x after its last whole vector. They lie in the last WIDTH rows.
        if (row0 + TILE_M > m - WIDTH) {
            const long long at = m * n / WIDTH * WIDTH + t;
            const long long row = at / n - row0, column = at % n - column0;
            __syncthreads();
            if (at < m * n && row >= -WIDTH && row < TILE_M && column >= 0 && column < TILE_N) {
                uint4* vec = row >= 0 ? tile + swizzled((int)column, (int)row / WIDTH) : before + (EXTRA ? column : 0);
#if RELU
                reinterpret_cast<ELEMENT*>(vec)[(row + WIDTH) % WIDTH] = relu(x[at]);
#else
                reinterpret_cast<ELEMENT*>(vec)[(row + WIDTH) % WIDTH] = x[at];
#endif
            }
        }
    }
    __syncthreads();
    if (t >= THREADS) {
        return;
    }
    const int vec = t % VECTORS_M, across = t / VECTORS_M;
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
        const int column = across * WIDTH + j, offset = j * M_REST % WIDTH;
        if (column0 + column >= n) {
            continue;
        }
        uint4 column_vec = tile[swizzled(column, vec)];
        if (offset) {
            column_vec = spliced(vec ? tile[swizzled(column, vec - 1)] : before[EXTRA ? column : 0], column_vec, WIDTH - offset);
        }
        const long long row = row0 + vec * WIDTH - offset;
        ELEMENT* to = y + (column0 + column) * m + row;
        if (row >= 0 && row + WIDTH <= m) {
            // Streaming, also so that the compiler keeps it apart from the stores below. It made four stores of 4 bytes of a plain one.
            __stcs(reinterpret_cast<uint4*>(to), column_vec);
        } else if (M_REST) {
            const Step* steps = reinterpret_cast<const Step*>(&column_vec);
#pragma unroll
            for (int i = 0; i < WIDTH; i += STEP) {
                if (row + i >= 0 && row + i < m) {
                    *reinterpret_cast<Step*>(to + i) = steps[i / STEP];
                }
            }
        }
    }
}
#endif
