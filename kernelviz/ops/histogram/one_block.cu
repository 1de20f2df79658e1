// CUDA C++ kernel of `histogram` for few bytes.
#include "loads_first.cuh"

constexpr int BINS = 256;
// THREADS of the block, EACH bytes of a thread.
#ifndef EACH
#define THREADS 256
#define EACH 1
#endif

// One block stores its counters, so that no counters in memory are cleared before, in a launch of their own. A thread has
// EACH bytes, all in flight at once, while the counters of the block are cleared.
extern "C" __global__ void __launch_bounds__(THREADS) histogram_one_block(
    const unsigned char* __restrict__ x, long long* __restrict__ out, unsigned n) {
    __shared__ unsigned table[BINS];
    unsigned bytes[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const unsigned i = k * THREADS + threadIdx.x;
        bytes[k] = i < n ? __ldg(x + i) : BINS;
    }
    loads_first(bytes);
    for (int bin = threadIdx.x; bin < BINS; bin += THREADS) {
        table[bin] = 0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        if (bytes[k] < BINS) {
            atomicAdd(table + bytes[k], 1u);
        }
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += THREADS) {
        out[bin] = table[bin];
    }
}
