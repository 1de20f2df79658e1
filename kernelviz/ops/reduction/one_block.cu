// CUDA C++ kernels of `sum` and `mean` of few elements, or not very many. ELEMENT is float, __half or __nv_bfloat16; sums are computed in fp32.
#include "cluster_gather.cuh"
#include "vec16.cuh"

// 16-byte vectors of a thread in flight at once.
#ifndef VECTORS
#define VECTORS 1
#endif
constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;

// The sum over a warp, in every lane.
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2) {
        v += __shfl_xor_sync(0xffffffffu, v, apart);
    }
    return v;
}

__device__ __forceinline__ float vector_sum(const Vec16<ELEMENT>& vector) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < WIDTH; k += 4) {
        sum += (to_float(vector.e[k]) + to_float(vector.e[k + 1])) + (to_float(vector.e[k + 2]) + to_float(vector.e[k + 3]));
    }
    return sum;
}

// The sum of what a thread reads, where `blocks` blocks share x and this one is number `block` of them.
__device__ __forceinline__ float thread_sum(const ELEMENT* __restrict__ x, long long n, int block, int blocks) {
    // Elements before the first whole vector (a view may start anywhere) and after the last: fewer than 2 WIDTH, one a thread of block 0.
    const long long before = (16 - reinterpret_cast<unsigned long long>(x) % 16) % 16 / sizeof(ELEMENT);
    const long long head = before < n ? before : n;
    const long long count = (n - head) / WIDTH;
    const long long edges = block == 0 ? n - count * WIDTH : 0;
    const Vec16<ELEMENT>* vectors = reinterpret_cast<const Vec16<ELEMENT>*>(x + head);
    ELEMENT edge = from_float<ELEMENT>(0.0f);
    if (threadIdx.x < edges) {
        edge = x[threadIdx.x < head ? threadIdx.x : count * WIDTH + threadIdx.x];
    }
    float sum = 0.0f;
    // The vectors of a thread are as far apart as all blocks read at once, so that no block has a vector a thread more than another.
    const long long step = (long long)blocks * blockDim.x;
    for (long long first = (long long)block * blockDim.x; first < count; first += VECTORS * step) {
        Vec16<ELEMENT> vector[VECTORS];
        // Loads under predicates, not a loop over what remains, so that all of them are in flight at once.
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            const long long i = first + k * step + threadIdx.x;
            vector[k] = i < count ? load_vec16(vectors + i) : Vec16<ELEMENT>{};
        }
        make_opaque(vector);
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            sum += vector_sum(vector[k]);
        }
    }
    return sum + to_float(edge);
}

// A division would only cost a sum time.
__device__ __forceinline__ float quotient(float sum, float divisor) { return divisor == 1.0f ? sum : sum / divisor; }

// The sum over a block of whole warps, in each thread of its first warp.
__device__ __forceinline__ float block_sum(float v) {
    __shared__ float of_warp[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    v = warp_sum(v);
    if (warps > 1) {
        if (lane == 0) {
            of_warp[warp] = v;
        }
        __syncthreads();
        if (warp == 0) {
            v = warp_sum(lane < warps ? of_warp[lane] : 0.0f);
        }
    }
    return v;
}

// One block reads everything, so that there are neither partial sums in memory nor a second stage. Without a smallest number of blocks in the
// launch bounds, ptxas uses 32 registers and waits for loads one after the other.
extern "C" __global__ void __launch_bounds__(1024, 1) sum_one_block(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, float divisor) {
    const float sum = block_sum(thread_sum(x, n, 0, 1));
    if (threadIdx.x == 0) {
        out[0] = from_float<ELEMENT>(quotient(sum, divisor));
    }
}

// One cluster reads everything; its blocks exchange their sums through shared memory.
constexpr int CLUSTER = 8;
extern "C" __global__ void __launch_bounds__(1024, 1) sum_cluster(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out, long long n, float divisor) {
    __shared__ float of_block[CLUSTER];
    block_has_started();
    gather<CLUSTER>(block_sum(thread_sum(x, n, block_in_cluster(), CLUSTER)), of_block);
    if (block_in_cluster() == 0 && threadIdx.x < 32) {
        const float sum = warp_sum(threadIdx.x < CLUSTER ? of_block[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) {
            out[0] = from_float<ELEMENT>(quotient(sum, divisor));
        }
    }
}

// Each block reads a part, and the last one waits for the sums of the others. A sum and the sign that it is there are one number of 64 bits,
// so that neither a fence nor an atomic operation is needed, each of which takes about as long as an access of the L2. The block that waits
// has an SM's slot for one block, so the others can run whatever their order. `slots`: for each other block, 0 before and afterwards.
extern "C" __global__ void __launch_bounds__(512, 2) sum_flagged(
    const ELEMENT* __restrict__ x, volatile unsigned long long* slots, ELEMENT* __restrict__ out, long long n, float divisor) {
    const float mine = block_sum(thread_sum(x, n, blockIdx.x, gridDim.x));
    const int others = gridDim.x - 1;
    if (blockIdx.x < others) {
        if (threadIdx.x == 0) {
            slots[blockIdx.x] = 1ull << 32 | __float_as_uint(mine);
        }
        return;
    }
    float sum = threadIdx.x == 0 ? mine : 0.0f;
    for (int i = threadIdx.x; i < others; i += blockDim.x) {
        unsigned long long slot;
        do {
            slot = slots[i];
        } while (slot == 0);
        slots[i] = 0;
        sum += __uint_as_float((unsigned)slot);
    }
    __syncthreads();  // the sums of warps have been read
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        out[0] = from_float<ELEMENT>(quotient(sum, divisor));
    }
}
