// The backward pass of a linear layer with an activation, before its products: dz = dy f'(z), and db = Σ dz over the rows.
// FUNCTION is RELU, GELU or SILU, ELEMENT __half or __nv_bfloat16. n is a multiple of 8, so that a thread accesses 16 bytes at a time.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define RELU 1
#define GELU 2
#define SILU 3
constexpr int EACH = 8;  // columns of a thread
constexpr int LANES = 32, GROUPS = 8;  // threads of a block: across the columns, and down the rows
constexpr int BLOCK_COLUMNS = LANES * EACH;

// dy f'(z)
__device__ __forceinline__ float gradient(float z, float dy) {
    if (FUNCTION == RELU) {
        return z > 0.0f ? dy : 0.0f;
    }
    if (FUNCTION == SILU) {
        const float s = __fdividef(1.0f, 1.0f + __expf(-z));
        return dy * (s * (1.0f + z * (1.0f - s)));
    }
    return dy * (0.5f + 0.5f * erff(z * 0.70710678f) + z * 0.39894228f * __expf(-0.5f * z * z));
}

struct alignas(16) Eight {
    ELEMENT of[EACH];
};

// A block has 256 columns and PART_ROWS rows. `sums` (parts, n) gets the sum of its rows.
extern "C" __global__ void __launch_bounds__(LANES * GROUPS) linear_derivative(
    const ELEMENT* __restrict__ z, const ELEMENT* __restrict__ dy, ELEMENT* __restrict__ dz, float* __restrict__ sums, long long m, int n) {
    __shared__ float parts[GROUPS][BLOCK_COLUMNS];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const int column = blockIdx.y * BLOCK_COLUMNS + lane * EACH;
    const long long first = (long long)blockIdx.x * PART_ROWS;
    float total[EACH] = {};
    if (column < n) {
#pragma unroll 4
        for (int i = group; i < PART_ROWS; i += GROUPS) {
            if (first + i < m) {
                const long long at = (first + i) * n + column;
                const Eight of_z = *reinterpret_cast<const Eight*>(z + at), of_dy = *reinterpret_cast<const Eight*>(dy + at);
                Eight result;
#pragma unroll
                for (int e = 0; e < EACH; ++e) {
                    const float value = gradient(static_cast<float>(of_z.of[e]), static_cast<float>(of_dy.of[e]));
                    result.of[e] = static_cast<ELEMENT>(value);
                    total[e] += value;
                }
                *reinterpret_cast<Eight*>(dz + at) = result;
            }
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; ++e) {
        parts[group][e * LANES + lane] = total[e];  // neighbouring threads, neighbouring banks
    }
    __syncthreads();
    // Thread t adds up column t of the block.
    const int t = threadIdx.x;
    const int out = blockIdx.y * BLOCK_COLUMNS + t;
    if (out < n) {
        float sum = 0.0f;
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            sum += parts[g][t % EACH * LANES + t / EACH];
        }
        sums[blockIdx.x * (long long)n + out] = sum;
    }
}

// db of 32 columns a block from the sums of all parts: a warp adds up each eighth part, then one warp those of the eight.
extern "C" __global__ void __launch_bounds__(LANES * GROUPS) linear_bias(
    const float* __restrict__ sums, ELEMENT* __restrict__ db, long long parts, int n) {
    __shared__ float of_group[GROUPS][LANES];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const int column = blockIdx.x * LANES + lane;
    float sum = 0.0f;
    if (column < n) {
#pragma unroll 4
        for (long long part = group; part < parts; part += GROUPS) {
            sum += sums[part * n + column];
        }
    }
    of_group[group][lane] = sum;
    __syncthreads();
    if (group == 0 && column < n) {
        float total = 0.0f;
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            total += of_group[g][lane];
        }
        db[column] = static_cast<ELEMENT>(total);
    }
}
