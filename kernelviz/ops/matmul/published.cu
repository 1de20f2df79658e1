// Kernels as a description of NVIDIA's workflow publishes them (source 5), in fp32: one thread an element of C, no shared memory, 32-bit indices.
// Blocks: x walks along the columns, y down the rows. The source names no block; here it has 16×16 threads.

// C = A B of row-major A (m, k) and B (k, n).
extern "C" __global__ void __launch_bounds__(256) matmul_published(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && column < n) {
        float sum = 0.0f;
        for (int i = 0; i < k; ++i) {
            sum += a[row * k + i] * b[i * n + column];
        }
        c[row * n + column] = sum;
    }
}

// y = max(x w + bias, 0) of row-major x (m, k) and w (k, n). The source has no bias; it is added here so that the result is that of a layer.
// As published, fmaxf makes 0 of NaN.
extern "C" __global__ void __launch_bounds__(256) linear_relu_published(
    const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ bias, float* __restrict__ y, int m, int n, int k) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < m && column < n) {
        float sum = 0.0f;
        for (int i = 0; i < k; ++i) {
            sum += x[row * k + i] * w[i * n + column];
        }
        y[row * n + column] = fmaxf(0.0f, sum + bias[column]);
    }
}
