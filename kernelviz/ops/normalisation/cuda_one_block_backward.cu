// Backward passes of `rmsnorm`, `layernorm` (CENTRED) and `add_rmsnorm` (ADDS) of few elements, in one launch of one block: a warp adds
// up a row's sums, then a thread has a column and loops over the rows, so that dw and db need no second launch. The second read of a row
// comes from L1. Rows and columns are constants of the kernel. Formulas as in cuda_backward.cu.
#include "rows.cuh"

using T = ELEMENT;
constexpr int WARPS = ONE_BLOCK_LANES / 32, EACH = (ONE_BLOCK_COLUMNS + 31) / 32;

extern "C" __global__ void __launch_bounds__(ONE_BLOCK_LANES) backward_one_block(
    const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ dy, const T* __restrict__ ds,
    const float* __restrict__ mean, const float* __restrict__ scale, T* __restrict__ dx, T* __restrict__ dw, T* __restrict__ db) {
    // Of each row: its mean, its scale, the factor of the normalised elements, and the mean of w * dy.
    __shared__ float terms[ONE_BLOCK_ROWS][4];
    const int lane = threadIdx.x % 32;
    // Loops with a constant number of iterations: one iteration needs no loop, and the compiler must not unroll it as one of many.
#pragma unroll 1
    for (int pass = 0; pass < (ONE_BLOCK_ROWS + WARPS - 1) / WARPS; ++pass) {
        const int row = threadIdx.x / 32 + pass * WARPS;
        if (row >= ONE_BLOCK_ROWS) {
            break;
        }
        const float of_row = scale[row], centre = CENTRED ? mean[row] : 0.0f;
        float inner = 0.0f, level = 0.0f;
#pragma unroll 8
        for (int i = 0; i < EACH; ++i) {
            const int column = lane + 32 * i;
            if (column < ONE_BLOCK_COLUMNS) {
                const float g = (float)w[column] * (float)dy[row * ONE_BLOCK_COLUMNS + column];
                inner = fmaf(g, ((float)x[row * ONE_BLOCK_COLUMNS + column] - centre) * of_row, inner);
                level += g;
            }
        }
        inner = warp_reduce<32>(inner, Add{});
        if (CENTRED) {
            level = warp_reduce<32>(level, Add{});
        }
        if (lane == 0) {
            terms[row][0] = centre;
            terms[row][1] = of_row;
            terms[row][2] = inner * (1.0f / ONE_BLOCK_COLUMNS);
            terms[row][3] = CENTRED ? level * (1.0f / ONE_BLOCK_COLUMNS) : 0.0f;
        }
    }
    __syncthreads();
#pragma unroll 1
    for (int pass = 0; pass < (ONE_BLOCK_COLUMNS + ONE_BLOCK_LANES - 1) / ONE_BLOCK_LANES; ++pass) {
        const int column = threadIdx.x + pass * ONE_BLOCK_LANES;
        if (column >= ONE_BLOCK_COLUMNS) {
            break;
        }
        const float g = (float)w[column];
        float sum = 0.0f, level = 0.0f;
#pragma unroll 4
        for (int row = 0; row < ONE_BLOCK_ROWS; ++row) {
            const int index = row * ONE_BLOCK_COLUMNS + column;
            const float d = (float)dy[index], of_row = terms[row][1];
            const float hat = ((float)x[index] - terms[row][0]) * of_row;
            const float inner = fmaf(-hat, terms[row][2], g * d) - terms[row][3];
            sum = fmaf(d, hat, sum);
            level += d;
            dx[index] = T(ADDS ? fmaf(inner, of_row, (float)ds[index]) : inner * of_row);
        }
        dw[column] = T(sum);
        if (CENTRED) {
            db[column] = T(level);
        }
    }
}
