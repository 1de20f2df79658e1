// CUDA C++ kernels of y = max(xT, 0): x is m x n, y is n x m, both row-major. ELEMENT is float, __half or __nv_bfloat16.
#include "vec16.cuh"

// max(v, 0) that propagates NaN.
__device__ __forceinline__ float positive(float v) {
    float out;
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(out) : "f"(v));
    return out;
}
__device__ __forceinline__ __half positive(__half v) { return __hmax_nan(v, __ushort_as_half(0)); }
__device__ __forceinline__ __nv_bfloat16 positive(__nv_bfloat16 v) { return __hmax_nan(v, __ushort_as_bfloat16(0)); }
__device__ __forceinline__ __half2 positive(__half2 v) { return __hmax2_nan(v, __half2half2(__ushort_as_half(0))); }
__device__ __forceinline__ __nv_bfloat162 positive(__nv_bfloat162 v) {
    return __hmax2_nan(v, __bfloat162bfloat162(__ushort_as_bfloat16(0)));
}

// 1. A tile of 64 x 64 through shared memory, 32 x 8 threads: rows are read along x and written along y, one element an access.
// The pitch of a tile's row is an odd number of 4-byte banks, so that a column lies in 32 different banks.
extern "C" __global__ void __launch_bounds__(256) reshape_tile(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, long long m, long long n, int across) {
    constexpr int PITCH = 64 + 4 / sizeof(ELEMENT);
    __shared__ ELEMENT tile[64][PITCH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int down = blockIdx.x / across;
    const long long top = (long long)down * 64, left = (long long)(blockIdx.x - down * across) * 64;
#pragma unroll
    for (int r = warp; r < 64; r += 8) {
#pragma unroll
        for (int c = lane; c < 64; c += 32) {
            if (top + r < m && left + c < n) {
                tile[r][c] = x[(top + r) * n + left + c];
            }
        }
    }
    __syncthreads();
#pragma unroll
    for (int c = warp; c < 64; c += 8) {
#pragma unroll
        for (int r = lane; r < 64; r += 32) {
            if (top + r < m && left + c < n) {
                y[(left + c) * m + top + r] = positive(tile[r][c]);
            }
        }
    }
}

// Loads a square of WIDTH x WIDTH elements (a 16-byte vector of each of WIDTH rows), applies relu and transposes it. The register of
// an element is known at compile time, so the transposition is free in fp32 and takes half an instruction an element in 16 bits.
constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;
__device__ __forceinline__ void load_square(const ELEMENT* x, long long n, Vec16<ELEMENT> (&out)[WIDTH]) {
    Vec16<ELEMENT> in[WIDTH];
#pragma unroll
    for (int r = 0; r < WIDTH; ++r) {
        in[r] = load_streaming(reinterpret_cast<const Vec16<ELEMENT>*>(x + r * n));
    }
#pragma unroll
    for (int r = 0; r < WIDTH; ++r) {
#pragma unroll
        for (int c = 0; c < 16 / sizeof(TWO); ++c) {
            TWO* pairs = reinterpret_cast<TWO*>(&in[r]);
            pairs[c] = positive(pairs[c]);
        }
    }
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
#pragma unroll
        for (int r = 0; r < WIDTH; ++r) {
            out[c].e[r] = in[r].e[c];
        }
    }
}

// 2. No shared memory: a thread stores its square as WIDTH vectors of y. A warp is 8 squares wide and 4 tall (segments of 128 bytes of
// x and 64 bytes of y), the block's 8 warps are 2 wide and 4 tall. Stores must be streaming: plain stores leave L2 as half lines and
// take 2.6 times as long.
extern "C" __global__ void __launch_bounds__(256) reshape_registers(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, long long m, long long n, int across) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int down = blockIdx.x / across;
    const long long column = ((blockIdx.x - down * across) * 16ll + warp % 2 * 8 + lane % 8) * WIDTH;
    const long long row = (down * 16ll + warp / 2 * 4 + lane / 8) * WIDTH;
    // m and n are multiples of WIDTH (the bind checks): a square lies entirely inside or entirely outside.
    if (row >= m || column >= n) {
        return;
    }
    Vec16<ELEMENT> square[WIDTH];
    load_square(x + row * n + column, n, square);
#pragma unroll
    for (int c = 0; c < WIDTH; ++c) {
        store_streaming(reinterpret_cast<Vec16<ELEMENT>*>(y + (column + c) * m + row), square[c]);
    }
}

// 3. Squares of 16 x 16 threads exchanged through shared memory, so that x is read and y is written in segments of 256 bytes. Vector v
// of a tile's row is stored at v ^ (row / WIDTH % 8). Then eight threads that write adjacent squares, and eight threads that read
// adjacent vectors, access all 32 banks without padding.
extern "C" __global__ void __launch_bounds__(256) reshape_squares(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ y, long long m, long long n, int across) {
    __shared__ Vec16<ELEMENT> tile[16 * WIDTH][16];
    const int down = blockIdx.x / across;
    const long long left = (blockIdx.x - down * across) * 16ll * WIDTH, top = down * 16ll * WIDTH;
    const int i = threadIdx.x % 16, j = threadIdx.x / 16;
    if (top + j * WIDTH < m && left + i * WIDTH < n) {
        Vec16<ELEMENT> square[WIDTH];
        load_square(x + (top + j * WIDTH) * n + left + i * WIDTH, n, square);
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) {
            store_vec16(&tile[i * WIDTH + c][j ^ (i % 8)], square[c]);
        }
    }
    __syncthreads();
    if (top + i * WIDTH >= m) {
        return;
    }
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
        const int c = k * 16 + j;
        if (left + c < n) {
            const Vec16<ELEMENT> vec = load_vec16(&tile[c][i ^ (c / WIDTH % 8)]);
            store_streaming(reinterpret_cast<Vec16<ELEMENT>*>(y + (left + c) * m + top) + i, vec);
        }
    }
}
