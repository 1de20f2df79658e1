// CUDA C++ kernels of `conv2d` and `conv_bias_relu` without tensor cores: x is (n, h, w, c), the filters are (k, r, r, c), y is (n, p, q, k).
// ELEMENT is __half or __nv_bfloat16. Products are added up in float.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define SIZES int n, int h, int w, int c, int k, int r, int s, int p, int q

__device__ __forceinline__ float positive(float value) {
    float result;
    asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(result) : "f"(value));
    return result;
}

// 1. One thread an element of y. Neighbouring threads have neighbouring filters and the same window: its elements are loaded once for a warp. With
// RELU, the bias of the filter is added, and negative results become 0.
extern "C" __global__ void __launch_bounds__(256) conv_direct(
    const ELEMENT* __restrict__ x, const ELEMENT* __restrict__ filters, const ELEMENT* __restrict__ bias, ELEMENT* __restrict__ y, SIZES) {
    const long long all = (long long)n * p * q * k;
    const long long element = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (element >= all) {
        return;
    }
    const int filter = element % k;
    const long long pixel = element / k;
    const int across = pixel % q, down = pixel / q % p;
    const long long image = pixel / q / p;
    const ELEMENT* tap = filters + (long long)filter * r * r * c;
    float sum = 0.0f;
    for (int i = 0; i < r; ++i) {
        const int row = down * s - r / 2 + i;
        for (int j = 0; j < r; ++j, tap += c) {
            const int column = across * s - r / 2 + j;
            if (row < 0 || row >= h || column < 0 || column >= w) {
                continue;
            }
            const ELEMENT* seen = x + ((image * h + row) * w + column) * c;
            for (int channel = 0; channel < c; ++channel) {
                sum += static_cast<float>(seen[channel]) * static_cast<float>(tap[channel]);
            }
        }
    }
    if (RELU) {
        sum = positive(sum + static_cast<float>(bias[filter]));
    }
    y[element] = static_cast<ELEMENT>(sum);
}

// 2. The window of each position as a row of a matrix (n·p·q, r·r·c), which is called im2col; one thread copies WIDTH channels of one tap, of which c
// is a multiple.
struct __align__(2 * WIDTH) Part {
    ELEMENT elements[WIDTH];
};

extern "C" __global__ void __launch_bounds__(256) conv_windows(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ windows, SIZES) {
    const int parts = c / WIDTH;
    const long long all = (long long)n * p * q * r * r * parts;
    const long long number = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (number >= all) {
        return;
    }
    const int part = number % parts;
    const long long tap = number / parts;
    const int j = tap % r, i = tap / r % r;
    const long long pixel = tap / r / r;
    const int column = pixel % q * s - r / 2 + j, row = pixel / q % p * s - r / 2 + i;
    const long long image = pixel / q / p;
    Part copied = {};
    if (row >= 0 && row < h && column >= 0 && column < w) {
        const ELEMENT* seen = x + ((image * h + row) * w + column) * c;
        copied = *reinterpret_cast<const Part*>(seen + part * WIDTH);
    }
    reinterpret_cast<Part*>(windows)[number] = copied;
}
