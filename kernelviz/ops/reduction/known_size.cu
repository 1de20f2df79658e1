// CUDA C++ kernel of `sum` and `mean` of few elements, by one block, for one size only. ELEMENT is float, __half or __nv_bfloat16; sums
// are computed in fp32. So few elements take 1.1 to 1.6 us, of which each cache line of instructions that is not there costs a part: with the
// size, threads and loads of a thread as constants, nothing is computed about addresses, ends or loops.
#include "adjacent_sum.cuh"
#include "vec16.cuh"

// SIZE elements, the number of threads that have some (a power of two), elements of a load.
#ifndef SIZE
#define SIZE 1
#define THREADS 1
#define OF_LOAD 1
#define DIVISOR 1
#endif
constexpr int BLOCK = THREADS < 32 ? 32 : THREADS;
constexpr int WARPS = BLOCK / 32;
constexpr int LOADS = SIZE / OF_LOAD, EACH = (LOADS + THREADS - 1) / THREADS;
constexpr int AFTER = SIZE - LOADS * OF_LOAD;
using Load = Adjacent<ELEMENT, OF_LOAD>;

// One thread is the block: x starts on a multiple of a load.
extern "C" __global__ void __launch_bounds__(1, 1) sum_known_size_serial(const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out) {
    out[0] = from_float<ELEMENT>(adjacent_sum<OF_LOAD, (THREADS == 1 ? SIZE : 1)>(x) * (1.0f / DIVISOR));
}

// x starts on a multiple of a load.
extern "C" __global__ void __launch_bounds__(BLOCK, 1) sum_known_size(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ out) {
    Load load[EACH > 0 ? EACH : 1];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int i = k * THREADS + threadIdx.x;
        const bool inside = (THREADS == BLOCK || threadIdx.x < THREADS) && i < LOADS;
        const Load* from = reinterpret_cast<const Load*>(x);
        if constexpr (OF_LOAD == 1) {
            // Threads without an element load the last one, so that no load waits for a branch.
            const Load one = from[min(i, LOADS - 1)];
            load[k] = inside ? one : Load{};
        } else {
            load[k] = load_if(inside, from + i);
        }
    }
    float sum = 0.0f;
    if (AFTER > 0) {
        using One = Adjacent<ELEMENT, 1>;
        sum = sum_of_pairs(load_if(threadIdx.x < AFTER, reinterpret_cast<const One*>(x) + LOADS * OF_LOAD + threadIdx.x));
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        sum = k == 0 && AFTER == 0 ? sum_of_pairs(load[k]) : sum + sum_of_pairs(load[k]);
    }
    sum = lanes_sum<(THREADS < 32 ? THREADS : 32)>(sum);
    if (WARPS > 1) {
        __shared__ float of_warp[WARPS];
        if (threadIdx.x % 32 == 0) {
            of_warp[threadIdx.x / 32] = sum;
        }
        __syncthreads();
        sum = lanes_sum<WARPS>(threadIdx.x < WARPS ? of_warp[threadIdx.x] : 0.0f);
    }
    // The threads of one warp all have the sum, and none waits for a branch.
    if (THREADS == 32 || threadIdx.x == 0) {
        out[0] = from_float<ELEMENT>(sum * (1.0f / DIVISOR));
    }
}
