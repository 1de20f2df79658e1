// CUDA C++ kernels of `transpose`: y[n][m] = x[m][n]. ELEMENT is float, __half or __nv_bfloat16; bits stay as they are.
#include "vec16.cuh"

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
// lie in one bank (16-bit elements: in two that two columns share), so reading them takes 32 turns.
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
constexpr int TILE_M = WORDS_M * WIDTH, TILE_N = WORDS_N * WIDTH, THREADS = WORDS_M * WORDS_N;
constexpr int EXTRA = M_REST ? 32 : 0;  // threads that read what lies before the tile

// Where vector `vector` (of WIDTH rows of x) of the tile's column `column` lies in shared memory: shifted so that both the 8
// threads that write vectors of 8 columns (WIDTH apart) and the 8 that read one column's reach all banks.
__device__ __forceinline__ int placed(int column, int vector) {
    return column * WORDS_M + (vector ^ ((column + column / WIDTH) & (WORDS_M < 8 ? WORDS_M - 1 : 7)));
}

// A WIDTH x WIDTH block in registers: 4 x 4 elements of 4 bytes by renaming, 8 x 8 of 2 bytes by one permutation a register.
__device__ __forceinline__ void turn(const uint4 (&in)[WIDTH], uint4 (&out)[WIDTH]) {
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

// The WIDTH elements from number `first` on of two vectors side by side; `first` is known where this is inlined.
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

// Words of a block of x into vectors of columns. Rows that are no whole vectors start anywhere in one: row i of a block lies
// N_REST * i elements behind a whole vector (N_REST = n mod WIDTH), which is known when this is compiled; so what lies in two
// aligned vectors is put together from registers. `last`: the last whole vector of x; none beyond it may be read.
__device__ __forceinline__ void read_block(
    const uint4* __restrict__ x, long long m, long long n, long long row0, long long column, long long last,
    uint4 (&out)[WIDTH]) {
    uint4 low[WIDTH], high[WIDTH], in[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        if (row0 + i >= 0 && row0 + i < m && column < n) {
            const long long vector = ((row0 + i) * n + column) / WIDTH;
            low[i] = x[min(vector, last)];
            if (i * N_REST % WIDTH) {
                high[i] = x[min(vector + 1, last)];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
        in[i] = i * N_REST % WIDTH ? spliced(low[i], high[i], i * N_REST % WIDTH) : low[i];
    }
    turn(in, out);
}

// 4. A tile of WORDS_M x WORDS_N blocks of WIDTH x WIDTH elements, one a thread: WIDTH vectors of WIDTH rows are asked for at
// once, turned in registers, and put as vectors of columns into shared memory, from which rows of y are written in vectors.
// Rows of y that are no whole vectors: column j of a block lies M_REST * j elements behind a whole vector of y. Only whole vectors
// are written but at the ends of a row of y: the first vector of a column takes its first elements from the block of rows
// before the tile, which a warp of its own reads once more. (Where tiles met inside of a vector, the H200 moved 2402 GB/s.)
extern "C" __global__ void __launch_bounds__(THREADS + EXTRA) transpose_words(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, long long m, long long n, int tiles_n) {
    __shared__ uint4 tile[TILE_N * WORDS_M];
    __shared__ uint4 before[M_REST ? TILE_N : 1];
    const long long row0 = (long long)(blockIdx.x / tiles_n) * TILE_M, column0 = (long long)(blockIdx.x % tiles_n) * TILE_N;
    const long long last = m * n / WIDTH - 1;
    const uint4* vectors = reinterpret_cast<const uint4*>(x);
    const int t = threadIdx.x;
    uint4 turned[WIDTH];
    if (t < THREADS) {
        const int across = t % WORDS_N, down = t / WORDS_N;
        read_block(vectors, m, n, row0 + down * WIDTH, column0 + across * WIDTH, last, turned);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) {
            tile[placed(across * WIDTH + j, down)] = turned[j];
        }
    } else {
        for (int across = t - THREADS; across < WORDS_N; across += 32) {
            read_block(vectors, m, n, row0 - WIDTH, column0 + across * WIDTH, last, turned);
#pragma unroll
            for (int j = 0; j < WIDTH; ++j) {
                before[across * WIDTH + j] = turned[j];
            }
        }
    }
    if constexpr (N_REST) {
        // The elements of x behind its last whole vector: they lie in the last WIDTH rows at most.
        if (row0 + TILE_M > m - WIDTH) {
            const long long at = m * n / WIDTH * WIDTH + t;
            const long long row = at / n - row0, column = at % n - column0;
            __syncthreads();
            if (at < m * n && row >= -WIDTH && row < TILE_M && column >= 0 && column < TILE_N) {
                uint4* vector = row >= 0 ? tile + placed((int)column, (int)row / WIDTH) : before + (M_REST ? column : 0);
                reinterpret_cast<ELEMENT*>(vector)[(row + WIDTH) % WIDTH] = x[at];
            }
        }
    }
    __syncthreads();
    if (t >= THREADS) {
        return;
    }
    const int vector = t % WORDS_M, across = t / WORDS_M;
#pragma unroll
    for (int j = 0; j < WIDTH; ++j) {
        const int column = across * WIDTH + j, behind = j * M_REST % WIDTH;
        if (column0 + column >= n) {
            continue;
        }
        uint4 found = tile[placed(column, vector)];
        if (behind) {
            found = spliced(vector ? tile[placed(column, vector - 1)] : before[column], found, WIDTH - behind);
        }
        const long long row = row0 + vector * WIDTH - behind;
        ELEMENT* to = y + (column0 + column) * m + row;
        if (row >= 0 && row + WIDTH <= m) {
            *reinterpret_cast<uint4*>(to) = found;
        } else {
            const ELEMENT* e = reinterpret_cast<const ELEMENT*>(&found);
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) {
                if (row + i >= 0 && row + i < m) {
                    to[i] = e[i];
                }
            }
        }
    }
}
#endif
