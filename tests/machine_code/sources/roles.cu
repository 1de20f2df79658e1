// Two loops that exclude each other: because of the thread's index (two roles of warps), or because of a size (one role).

extern "C" __global__ void __launch_bounds__(128) warps_by_index(
    const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, int n) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp < 2) {
#pragma unroll 1
        for (int i = lane + 32 * warp; i < n; i += 64) {
            out[i] = x[i] + 1.0f;
        }
    } else {
#pragma unroll 1
        for (int i = lane + 32 * (warp - 2); i < n; i += 64) {
            out[n + i] = x[i] * y[i] + y[n + i];
        }
    }
}

extern "C" __global__ void __launch_bounds__(128) loops_by_size(
    const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, int n) {
    if (n % 4 == 0) {
#pragma unroll 1
        for (int i = threadIdx.x; i < n / 4; i += 128) {
            reinterpret_cast<float4*>(out)[i] = reinterpret_cast<const float4*>(x)[i];
        }
    } else {
#pragma unroll 1
        for (int i = threadIdx.x; i < n; i += 128) {
            out[i] = x[i] * y[i] + y[n + i];
        }
    }
}
