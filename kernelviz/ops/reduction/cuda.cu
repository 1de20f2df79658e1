// CUDA C++ kernels of `sum` and `mean`. ELEMENT is float, __half or __nv_bfloat16; sums are computed in fp32 for each of them.
#include "vec16.cuh"

constexpr int THREADS = 512;  // of `sum_persistent`
constexpr int VECTORS = 4;    // 16-byte vectors of each of its threads in flight at once

// The sum over a warp, in every lane.
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        v += __shfl_xor_sync(0xffffffffu, v, apart);
    }
    return v;
}

// The sum over a block, in its first warp; the caller synchronises before calling it again.
__device__ __forceinline__ float block_sum(float v) {
    __shared__ float of_warp[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_sum(v);
    if (lane == 0) {
        of_warp[warp] = v;
    }
    __syncthreads();
    return warp == 0 ? warp_sum(lane < warps ? of_warp[lane] : 0.0f) : 0.0f;
}

__device__ __forceinline__ float element_or_zero(const ELEMENT* x, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    return i < n ? to_float(x[i]) : 0.0f;
}

// 1. Every element is added to one number in L2, where the atomics are serialised.
extern "C" __global__ void __launch_bounds__(256) sum_atomic_per_element(
    const ELEMENT* __restrict__ x, float* __restrict__ total, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(total, to_float(x[i]));
    }
}

// 2. Five shuffles add up the 32 numbers of a warp without using memory: a 32nd of the atomics.
extern "C" __global__ void __launch_bounds__(256) sum_atomic_per_warp(
    const ELEMENT* __restrict__ x, float* __restrict__ total, long long n) {
    const float sum = warp_sum(element_or_zero(x, n));
    if (threadIdx.x % 32 == 0) {
        atomicAdd(total, sum);
    }
}

// 3. Warps add up through shared memory: one atomic a block of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) sum_atomic_per_block(
    const ELEMENT* __restrict__ x, float* __restrict__ total, long long n) {
    const float sum = block_sum(element_or_zero(x, n));
    if (threadIdx.x == 0) {
        atomicAdd(total, sum);
    }
}

// After 1 to 3: converts the fp32 sum to the output's format.
extern "C" __global__ void __launch_bounds__(32) sum_finish(
    const float* __restrict__ total, ELEMENT* __restrict__ out, float divisor) {
    if (threadIdx.x == 0) {
        out[0] = from_float<ELEMENT>(*total / divisor);
    }
}

// 4. A fixed grid strides through the vector, one element a thread and step; a second kernel adds up the blocks' sums in order.
extern "C" __global__ void __launch_bounds__(512) sum_partials(
    const ELEMENT* __restrict__ x, float* __restrict__ partials, long long n) {
    const long long step = (long long)gridDim.x * blockDim.x;
    float sum = 0.0f;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        sum += to_float(x[i]);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
    }
}
extern "C" __global__ void __launch_bounds__(1024) sum_of_partials(
    const float* __restrict__ partials, ELEMENT* __restrict__ out, int count, float divisor) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        sum += partials[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        out[0] = from_float<ELEMENT>(sum / divisor);
    }
}

__device__ __forceinline__ float vector_sum(const Vec16<ELEMENT>& vector) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < Vec16<ELEMENT>::WIDTH; k += 4) {
        sum += (to_float(vector.e[k]) + to_float(vector.e[k + 1])) + (to_float(vector.e[k + 2]) + to_float(vector.e[k + 3]));
    }
    return sum;
}

// 5. One launch: VECTORS 16-byte vectors of a thread in flight at once. The block that finishes last adds up the blocks' sums, in an
// order that does not depend on which block it is. `ticket` counts finished blocks; the last one resets it to 0.
extern "C" __global__ void __launch_bounds__(THREADS) sum_persistent(
    const ELEMENT* __restrict__ x, float* __restrict__ partials, unsigned* __restrict__ ticket,
    ELEMENT* __restrict__ out, long long n, float divisor) {
    constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;
    // Elements before the first whole vector (a view may start anywhere) and after the last.
    const long long before = (16 - reinterpret_cast<unsigned long long>(x) % 16) % 16 / sizeof(ELEMENT);
    const long long head = before < n ? before : n;
    const long long count = (n - head) / WIDTH;
    const Vec16<ELEMENT>* vectors = reinterpret_cast<const Vec16<ELEMENT>*>(x + head);
    float sums[VECTORS] = {};
    const long long step = (long long)gridDim.x * THREADS;
    long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    for (; i + (VECTORS - 1) * step < count; i += VECTORS * step) {
        Vec16<ELEMENT> vector[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            vector[k] = load_streaming(vectors + i + k * step);
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            sums[k] += vector_sum(vector[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < VECTORS - 1; ++k) {
        if (i + k * step < count) {
            sums[k] += vector_sum(load_streaming(vectors + i + k * step));
        }
    }
    if (blockIdx.x == 0) {
        const long long tail = head + count * WIDTH + threadIdx.x;
        sums[0] += threadIdx.x < head ? to_float(x[threadIdx.x]) : 0.0f;
        sums[0] += tail < n ? to_float(x[tail]) : 0.0f;
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < VECTORS; ++k) {
        sum += sums[k];
    }
    sum = block_sum(sum);
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) {
        return;
    }
    __threadfence();
    sum = 0.0f;
    for (int b = threadIdx.x; b < gridDim.x; b += THREADS) {
        sum += __ldcg(partials + b);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        out[0] = from_float<ELEMENT>(sum / divisor);
    }
}
