// `copy` of vectors that begin at the same distance from 16 bytes: the `head` elements before the first whole 16-byte vector and those after
// the last one are copied one by one. ELEMENT is float, __half or __nv_bfloat16; none of them is converted, so bits stay as they are.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int WIDTH = 16 / sizeof(ELEMENT);

extern "C" __global__ void __launch_bounds__(256) copy_peeled(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, int head) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long vectors = (n - head) / WIDTH, tail = head + vectors * WIDTH + i;
    if (i < vectors) {
        reinterpret_cast<uint4*>(out + head)[i] = reinterpret_cast<const uint4*>(x + head)[i];
    }
    if (i < head) {
        out[i] = x[i];
    }
    if (tail < n) {
        out[tail] = x[tail];
    }
}
