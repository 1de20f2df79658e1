// CUDA C++ ladder of `matmul` in fp32 with ordinary multiply-adds: C (m, n) = A (m, k) B (k, n), row-major. Each kernel has one idea
// more than the one before. Blocks: x walks down the rows, y across the columns. VECTORS is 1 if rows of A, B and C begin at
// multiples of 16 bytes, so that 16 bytes can be accessed at once.

// 1. One thread an element of C; neighbouring threads take neighbouring rows. A warp's loads of A and stores of C are then a row
// apart, and each of them is a memory transaction of its own.
extern "C" __global__ void __launch_bounds__(256) matmul_rows_across_threads(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, long long m, long long n, long long k) {
    const long long row = (long long)blockIdx.x * 32 + threadIdx.x;
    const long long column = (long long)blockIdx.y * 8 + threadIdx.y;
    if (row >= m || column >= n) {
        return;
    }
    float sum = 0.0f;
    for (long long i = 0; i < k; ++i) {
        sum += a[row * k + i] * b[i * n + column];
    }
    c[row * n + column] = sum;
}

// 2. As 3, but each thread computes eight elements of one column: an element of B that was loaded from shared memory is used eight
// times from a register.
extern "C" __global__ void __launch_bounds__(512) matmul_register_column(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, long long m, long long n, long long k) {
    constexpr int BM = 64, BN = 64, BK = 8, TM = 8;
    __shared__ float a_tile[BM][BK];
    __shared__ float b_tile[BK][BN];
    const int t = threadIdx.x;
    const long long row0 = (long long)blockIdx.x * BM;
    const long long column0 = (long long)blockIdx.y * BN;
    const int column = t % BN;
    const int first_row = t / BN * TM;
    float sum[TM] = {};
    for (long long start = 0; start < k; start += BK) {
        const long long a_row = row0 + t / BK;
        const long long b_row = start + t / BN;
        a_tile[t / BK][t % BK] = a_row < m && start + t % BK < k ? a[a_row * k + start + t % BK] : 0.0f;
        b_tile[t / BN][column] = b_row < k && column0 + column < n ? b[b_row * n + column0 + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < BK; ++i) {
            const float b_element = b_tile[i][column];
#pragma unroll
            for (int r = 0; r < TM; ++r) {
                sum[r] += a_tile[first_row + r][i] * b_element;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < TM; ++r) {
        if (row0 + first_row + r < m && column0 + column < n) {
            c[(row0 + first_row + r) * n + column0 + column] = sum[r];
        }
    }
}

// 3. Each thread computes 8×8 elements: 16 loads from shared memory feed 64 multiply-adds.
extern "C" __global__ void __launch_bounds__(256) matmul_register_tile(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, long long m, long long n, long long k) {
    constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;
    __shared__ float a_tile[BM][BK];
    __shared__ float b_tile[BK][BN];
    const int t = threadIdx.x;
    const long long row0 = (long long)blockIdx.x * BM;
    const long long column0 = (long long)blockIdx.y * BN;
    const int first_row = t / (BN / TN) * TM;
    const int first_column = t % (BN / TN) * TN;
    float sum[TM][TN] = {};
    for (long long start = 0; start < k; start += BK) {
#pragma unroll
        for (int i = 0; i < BM * BK; i += 256) {
            const int r = (i + t) / BK, j = (i + t) % BK;
            a_tile[r][j] = row0 + r < m && start + j < k ? a[(row0 + r) * k + start + j] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < BN * BK; i += 256) {
            const int r = (i + t) / BN, j = (i + t) % BN;
            b_tile[r][j] = start + r < k && column0 + j < n ? b[(start + r) * n + column0 + j] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < BK; ++i) {
            float a_part[TM], b_part[TN];
#pragma unroll
            for (int r = 0; r < TM; ++r) {
                a_part[r] = a_tile[first_row + r][i];
            }
#pragma unroll
            for (int j = 0; j < TN; ++j) {
                b_part[j] = b_tile[i][first_column + j];
            }
#pragma unroll
            for (int r = 0; r < TM; ++r) {
#pragma unroll
                for (int j = 0; j < TN; ++j) {
                    sum[r][j] += a_part[r] * b_part[j];
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < TM; ++r) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            if (row0 + first_row + r < m && column0 + first_column + j < n) {
                c[(row0 + first_row + r) * n + column0 + first_column + j] = sum[r][j];
            }
        }
    }
}

// What the following kernels share.
constexpr int ROWS = 128, COLUMNS = 128, DEPTH = 16, THREADS = 256;
constexpr int PITCH = ROWS + 4;
// Of the tile of A, which is stored transposed, so that eight rows of one thread are neighbours. PITCH keeps rows of the tile at
// multiples of 16 bytes.

// Four neighbouring elements of a row of which `left` are in the matrix; the others are zero.
__device__ __forceinline__ float4 load_four(const float* __restrict__ at, int left) {
#if VECTORS
    return left > 0 ? __ldg(reinterpret_cast<const float4*>(at)) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#else
    return make_float4(
        left > 0 ? at[0] : 0.0f, left > 1 ? at[1] : 0.0f, left > 2 ? at[2] : 0.0f, left > 3 ? at[3] : 0.0f);
#endif
}

__device__ __forceinline__ void store_four(float* __restrict__ row, long long column, long long columns, float4 four) {
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

// What one thread copies of a tile of A and of B: two times four elements of each. A thread takes a half of a row of A's tile (one
// sector of 32 bytes), so that a warp writes 32 neighbouring rows of the transposed tile without a bank conflict. Rows of A and columns
// of B outside of the matrices are replaced by the last ones: what is computed of them is not stored. Only K has to end with zeros.
struct Copied {
    float4 a[2], b[2];
    const float *next_a, *next_b;
    long long n;
    int depth;    // elements of K from the next tile on
    int columns;  // elements of the row of B from this thread's first one on

    __device__ __forceinline__ Copied(
        const float* __restrict__ a_matrix, const float* __restrict__ b_matrix, long long row0, long long column0, long long m,
        long long n, long long k)
        : n(n), depth((int)k) {
        const int t = threadIdx.x;
        const long long row = min(row0 + t % ROWS, m - 1);
        const long long column = min(column0 + t % 32 * 4, n - (VECTORS ? 4 : 1));
        next_a = a_matrix + row * k + t / ROWS * 8;
        next_b = b_matrix + t / 32 * n + column;
        columns = VECTORS ? 4 : (int)min(n - column, 4LL);
    }

    __device__ __forceinline__ void load() {
        const int left_of_a = depth - threadIdx.x / ROWS * 8;
        const int first_row = threadIdx.x / 32;
        a[0] = load_four(next_a, left_of_a);
        a[1] = load_four(next_a + 4, left_of_a - 4);
        b[0] = load_four(next_b, first_row < depth ? columns : 0);
        b[1] = load_four(next_b + 8 * n, first_row + 8 < depth ? columns : 0);
        next_a += DEPTH;
        next_b += DEPTH * n;
        depth -= DEPTH;
    }

    __device__ __forceinline__ void store(float (*a_tile)[PITCH], float (*b_tile)[COLUMNS]) const {
        const int t = threadIdx.x;
        const int row = t % ROWS, depth = t / ROWS * 8;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            a_tile[depth + 4 * half][row] = a[half].x;
            a_tile[depth + 4 * half + 1][row] = a[half].y;
            a_tile[depth + 4 * half + 2][row] = a[half].z;
            a_tile[depth + 4 * half + 3][row] = a[half].w;
            *reinterpret_cast<float4*>(&b_tile[t / 32 + 8 * half][t % 32 * 4]) = b[half];
        }
    }
};

// 8×8 elements of C in a thread: two groups of four rows by two groups of four columns, which are ROW_STEP and COLUMN_STEP apart.
template <int ROW_STEP, int COLUMN_STEP>
struct Sums {
    float sum[8][8] = {};

    __device__ __forceinline__ void add(const float (*a_tile)[PITCH], const float (*b_tile)[COLUMNS], int row, int column) {
#pragma unroll
        for (int i = 0; i < DEPTH; ++i) {
            float a_part[8], b_part[8];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                *reinterpret_cast<float4*>(a_part + 4 * half) =
                    *reinterpret_cast<const float4*>(&a_tile[i][row + half * ROW_STEP]);
                *reinterpret_cast<float4*>(b_part + 4 * half) =
                    *reinterpret_cast<const float4*>(&b_tile[i][column + half * COLUMN_STEP]);
            }
#pragma unroll
            for (int r = 0; r < 8; ++r) {
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    sum[r][j] += a_part[r] * b_part[j];
                }
            }
        }
    }

    __device__ __forceinline__ void store(float* __restrict__ c, long long row, long long column, long long m, long long n) const {
#pragma unroll
        for (int r = 0; r < 8; ++r) {
            const long long at = row + r % 4 + r / 4 * ROW_STEP;
            if (at < m) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const float* four = sum[r] + 4 * half;
                    store_four(
                        c + at * n, column + half * COLUMN_STEP, n, make_float4(four[0], four[1], four[2], four[3]));
                }
            }
        }
    }
};

// 4. Loads and stores of 16 bytes, from global and from shared memory. The tile of A is transposed on its way.
extern "C" __global__ void __launch_bounds__(THREADS) matmul_vec16(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, long long m, long long n, long long k) {
    __shared__ __align__(16) float a_tile[DEPTH][PITCH];
    __shared__ __align__(16) float b_tile[DEPTH][COLUMNS];
    const long long row0 = (long long)blockIdx.x * ROWS, column0 = (long long)blockIdx.y * COLUMNS;
    const int row = threadIdx.x / 16 * 8, column = threadIdx.x % 16 * 8;
    Sums<4, 4> sums;
    Copied copied(a, b, row0, column0, m, n, k);
    for (int start = 0; start < k; start += DEPTH) {
        copied.load();
        copied.store(a_tile, b_tile);
        __syncthreads();
        sums.add(a_tile, b_tile, row, column);
        __syncthreads();
    }
    sums.store(c, row0 + row, column0 + column, m, n);
}

// A warp's part of the tile: 32 rows by 64 columns. Its threads lie 4 by 8, and each takes four rows at two places and four columns at
// two places, so that the 16-byte loads of a warp are of neighbouring addresses.
__device__ __forceinline__ int row_in_warp_tile() {
    return threadIdx.x / 64 * 32 + threadIdx.x % 32 / 8 * 4;
}
__device__ __forceinline__ int column_in_warp_tile() {
    return threadIdx.x / 32 % 2 * 64 + threadIdx.x % 8 * 4;
}

// 5. A tile for each warp: the threads of a warp share what they read from shared memory, without bank conflicts.
extern "C" __global__ void __launch_bounds__(THREADS) matmul_warp_tile(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, long long m, long long n, long long k) {
    __shared__ __align__(16) float a_tile[DEPTH][PITCH];
    __shared__ __align__(16) float b_tile[DEPTH][COLUMNS];
    const long long row0 = (long long)blockIdx.x * ROWS, column0 = (long long)blockIdx.y * COLUMNS;
    const int row = row_in_warp_tile(), column = column_in_warp_tile();
    Sums<16, 32> sums;
    Copied copied(a, b, row0, column0, m, n, k);
    for (int start = 0; start < k; start += DEPTH) {
        copied.load();
        copied.store(a_tile, b_tile);
        __syncthreads();
        sums.add(a_tile, b_tile, row, column);
        __syncthreads();
    }
    sums.store(c, row0 + row, column0 + column, m, n);
}

// 6. Two tiles of each factor: the next one is loaded while the multiply-adds of this one run, and one barrier an iteration is enough.
extern "C" __global__ void __launch_bounds__(THREADS, 2) matmul_double_buffer(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, long long m, long long n, long long k) {
    __shared__ __align__(16) float a_tile[2][DEPTH][PITCH];
    __shared__ __align__(16) float b_tile[2][DEPTH][COLUMNS];
    const long long row0 = (long long)blockIdx.x * ROWS, column0 = (long long)blockIdx.y * COLUMNS;
    const int row = row_in_warp_tile(), column = column_in_warp_tile();
    Sums<16, 32> sums;
    Copied copied(a, b, row0, column0, m, n, k);
    copied.load();
    copied.store(a_tile[0], b_tile[0]);
    __syncthreads();
    int current = 0;
    for (int start = DEPTH; start < k; start += DEPTH) {
        copied.load();
        sums.add(a_tile[current], b_tile[current], row, column);
        copied.store(a_tile[current ^ 1], b_tile[current ^ 1]);
        __syncthreads();
        current ^= 1;
    }
    sums.add(a_tile[current], b_tile[current], row, column);
    sums.store(c, row0 + row, column0 + column, m, n);
}
