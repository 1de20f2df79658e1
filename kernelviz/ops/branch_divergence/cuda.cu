// CUDA C++ kernels of `branch_divergence`: y = first(x) for g neighbours, second(x) for the next g, and so on. Compiled with -DSTEPS, the
// steps of a branch, -DRATE, and -DGROUP, g: a division by a number that the compiler knows is a multiplication.

// Two instructions a step: a sum and a multiply-add.
__device__ __forceinline__ float first_branch(float y) {
#pragma unroll 16
    for (int step = 0; step < STEPS; ++step) {
        y = fmaf(RATE, 1.0f - y, y);
    }
    return y;
}
// Two instructions a step: a product and a multiply-add.
__device__ __forceinline__ float second_branch(float x) {
    float y = fabsf(x);
#pragma unroll 16
    for (int step = 0; step < STEPS; ++step) {
        y = fmaf(-RATE * y, y, y);
    }
    return y;
}

// 1. A branch. The threads of a warp that take the first wait for those that take the second, and the other way round; a warp whose
// threads all take the same executes only that one.
extern "C" __global__ void __launch_bounds__(256) branch_divergent(
    const float* __restrict__ x, float* __restrict__ out, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float v = x[i];
        float y;
        if (i / GROUP % 2 == 0) {
            y = first_branch(v);
        } else {
            y = second_branch(v);
        }
        out[i] = y;
    }
}

// 2. No branch: every thread computes both and selects one.
extern "C" __global__ void __launch_bounds__(256) branch_select(
    const float* __restrict__ x, float* __restrict__ out, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const float v = x[i];
        const float one = first_branch(v), other = second_branch(v);
        out[i] = i / GROUP % 2 == 0 ? one : other;
    }
}

// 3. The branch, but each warp takes elements of one kind: the first four warps of a block those of the first branch. `pairs` times
// 2 g neighbours are a block's (`pairs_of`); g is at most 128, and pairs * g, too. A warp's accesses skip every other group, which the
// other warps of the block access, so L1 reads each line from L2 once.
extern "C" __global__ void __launch_bounds__(256) branch_regrouped(
    const float* __restrict__ x, float* __restrict__ out, unsigned n) {
    constexpr unsigned g = GROUP <= 128 ? GROUP : 128, pairs = 128 / g;
    const unsigned half = threadIdx.x / 128, k = threadIdx.x % 128;
    const unsigned i = (blockIdx.x * pairs + k / g) * (2 * g) + half * g + k % g;
    if (k < pairs * g && i < n) {
        const float v = x[i];
        out[i] = half == 0 ? first_branch(v) : second_branch(v);
    }
}
