// CUDA C++ kernels of `matmul`: C (m, n) = A (m, k) B (k, n), row-major. ELEMENT is float, __half or __nv_bfloat16;
// products are added up in float. Blocks: x walks down the rows (gridDim.x may be up to 2^31 - 1), y across the columns.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// 1. One thread an element of C. The threads of a warp share a row of A (one broadcast load) and take neighbouring columns
// of B, so that a warp's 32 loads become whole lines. Every element of A and B is still loaded n and m times.
extern "C" __global__ void __launch_bounds__(256) matmul_naive(
    const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, ELEMENT* __restrict__ c, long long m, long long n,
    long long k) {
    const long long row = (long long)blockIdx.x * blockDim.y + threadIdx.y;
    const long long column = (long long)blockIdx.y * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) {
        return;
    }
    float sum = 0.0f;
    for (long long i = 0; i < k; ++i) {
        sum += static_cast<float>(a[row * k + i]) * static_cast<float>(b[i * n + column]);
    }
    c[row * n + column] = static_cast<ELEMENT>(sum);
}

// 2. A block of 32×32 threads copies a tile of A and one of B into shared memory and uses each element 32 times from there.
constexpr int TILE = 32;

extern "C" __global__ void __launch_bounds__(TILE * TILE) matmul_tiled(
    const ELEMENT* __restrict__ a, const ELEMENT* __restrict__ b, ELEMENT* __restrict__ c, long long m, long long n,
    long long k) {
    // No padding: a warp reads one element of a_tile (broadcast) and 32 neighbours of b_tile, so there are no bank conflicts.
    __shared__ float a_tile[TILE][TILE];
    __shared__ float b_tile[TILE][TILE];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const long long row = (long long)blockIdx.x * TILE + y;
    const long long column = (long long)blockIdx.y * TILE + x;
    float sum = 0.0f;
    for (long long start = 0; start < k; start += TILE) {
        const bool in_a = row < m && start + x < k;
        const bool in_b = column < n && start + y < k;
        a_tile[y][x] = in_a ? static_cast<float>(a[row * k + start + x]) : 0.0f;
        b_tile[y][x] = in_b ? static_cast<float>(b[(start + y) * n + column]) : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            sum += a_tile[y][i] * b_tile[i][x];
        }
        __syncthreads();
    }
    if (row < m && column < n) {
        c[row * n + column] = static_cast<ELEMENT>(sum);
    }
}
