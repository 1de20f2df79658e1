// Copies with a known fault, for the limiter's test on a GPU. None of them is a variant of the product.

// Neighbouring threads take elements 32 bytes apart, so each load and each store of 4 bytes moves a sector of its own.
extern "C" __global__ void copy_strided(const float* __restrict__ x, float* __restrict__ out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long rows = n / 8;
    if (i < rows * 8) {
        const long long j = i % rows * 8 + i / rows;
        out[j] = x[j];
    } else if (i < n) {
        out[i] = x[i];
    }
}

// One warp a block, and shared memory for four blocks an SM: 4 of 64 warps.
extern "C" __global__ void copy_low_occupancy(const float* __restrict__ x, float* __restrict__ out, long long n) {
    __shared__ float held[12 * 1024];
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        held[threadIdx.x] = x[i];
        __syncwarp();
        out[i] = held[threadIdx.x];
    }
}
