// The second step of `linear_cross_entropy`: the loss of each row from the maxima and sums that wgmma.cu stored for each tile of the vocabulary.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "row_parts.cuh"

constexpr int ROWS = 32, WARPS = 8;
constexpr float LOG2_E = 1.4426950408889634f;
constexpr float LOWEST = -1e38f;  // not -inf, since -inf - -inf is NaN

// Both parts as one, whose maximum is the larger one.
__device__ __forceinline__ float2 merged(float2 a, float2 b) {
    const float top = fmaxf(a.x, b.x);
    return make_float2(top, a.y * exp2_fast((a.x - top) * LOG2_E) + b.y * exp2_fast((b.x - top) * LOG2_E));
}

// The losses, and ln Σ exp unless `whole_of_row` is null, from `tiles` parts of each row: a block has 32 rows, each of its eight warps every eighth tile of them.
extern "C" __global__ void __launch_bounds__(32 * WARPS) combine_parts(
    const float2* __restrict__ parts, const float* __restrict__ chosen, ELEMENT* __restrict__ loss, float* __restrict__ whole_of_row, int m,
    int tiles) {
    __shared__ float2 of_warps[WARPS][ROWS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.x * ROWS + lane;
    float2 whole = make_float2(LOWEST, 0.0f);
    if (row < m) {
#pragma unroll 8
        for (int tile = warp; tile < tiles; tile += WARPS) {
            whole = merged(whole, parts[(long long)tile * m + row]);
        }
    }
    of_warps[warp][lane] = whole;
    __syncthreads();
    if (warp == 0 && row < m) {
#pragma unroll 1
        for (int other = 1; other < WARPS; ++other) {
            whole = merged(whole, of_warps[other][lane]);
        }
        const float logarithm = natural_logarithm(whole.y);
        loss[row] = static_cast<ELEMENT>(logarithm + (whole.x - chosen[row]));
        if (whole_of_row != nullptr) {
            whole_of_row[row] = logarithm + whole.x;
        }
    }
}
