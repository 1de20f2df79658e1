// Kernels whose loops have a known shape, for the tests that look for the main loop of a kernel.

// A loop over the whole grid's stride, not unrolled.
extern "C" __global__ void __launch_bounds__(256) grid_stride(
    const float* __restrict__ x, float* __restrict__ out, long long n, float factor) {
    const long long step = (long long)gridDim.x * blockDim.x;
#pragma unroll 1
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        out[i] = x[i] * factor;
    }
}

// The compiler unrolls this loop and leaves a second one for the remainder.
extern "C" __global__ void __launch_bounds__(128) unrolled_with_remainder(
    const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, int n) {
    float sum = 0.0f;
    const float* from = x + (long long)blockIdx.x * n;
#pragma unroll 4
    for (int i = threadIdx.x; i < n; i += 128) {
        sum += from[i] * y[i];
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}

// Threads of a warp take different paths within the loop and meet again.
extern "C" __global__ void __launch_bounds__(256) divergent(
    const float* __restrict__ x, float* __restrict__ out, int n, int steps) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    float value = i < n ? x[i] : 0.0f;
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
        if (value > 0.5f) {
            float inner = value;
#pragma unroll 1
            while (inner > 0.1f) {
                inner = inner * 0.7f - sinf(inner) * 0.01f;
            }
            value = inner + x[(i + k) % n];
            out[(i + k) % n] = value;
        } else {
            value = __expf(value) + x[(i + 2 * k + 1) % n] + x[(i + 3 * k + 2) % n];
            __syncwarp();
        }
    }
    out[i] = value;
}

// An interpreter: the switch becomes an indirect branch within the loop.
extern "C" __global__ void __launch_bounds__(128) interpreter(
    const int* __restrict__ program, const float* __restrict__ x, float* __restrict__ out, int steps) {
    float value = x[threadIdx.x];
    int at = threadIdx.x;
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
        switch (program[k]) {
        case 0: value += x[at]; break;
        case 1: value *= x[at + 1]; break;
        case 2: value = sqrtf(value); break;
        case 3: value = value > 0.0f ? logf(value) : value; break;
        case 4: value = __sinf(value) + x[at * 2]; break;
        case 5: at = (at + 7) & 1023; break;
        case 6: out[at] = value; break;
        case 7: value = fmodf(value, 3.0f); break;
        case 8: value = value / x[at + 2]; break;
        case 9: value = atomicAdd(out + at, value); break;
        default: value = -value; at ^= 1; break;
        }
    }
    out[threadIdx.x] = value;
}

// Outer loop over rows, inner loop over columns; the outer body has memory instructions, too, but fewer.
extern "C" __global__ void __launch_bounds__(256) nested(
    const float* __restrict__ x, const float* __restrict__ y, const float* __restrict__ z, float* __restrict__ out, int m, int n) {
    for (int row = blockIdx.x; row < m; row += gridDim.x) {
        float sum = z[row];
        const float* a = x + (long long)row * n;
        const float* b = y + (long long)row * n;
#pragma unroll 1
        for (int i = threadIdx.x; i < n; i += 512) {
            sum += a[i] * b[i];
            sum += a[i + 256] * b[i + 256];
        }
        __shared__ float part[256];
        part[threadIdx.x] = sum;
        __syncthreads();
        out[(long long)row * 256 + threadIdx.x] = part[255 - threadIdx.x];
        __syncthreads();
    }
}
