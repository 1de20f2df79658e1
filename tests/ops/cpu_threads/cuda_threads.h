// Runs kernels of CUDA C++ with threads of the processor: a thread for each thread of a block, one block after the other. For kernels
// that use registers, shared memory, __syncthreads(), copies of async_copy.cuh and atomicAdd only. What it cannot show: races, bank
// conflicts, and any time.
#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

using std::min;

struct Index {
    unsigned x, y, z;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
thread_local Index threadIdx, blockIdx;
static Index blockDim, gridDim;
static std::barrier<>* block_barrier;

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __restrict__

inline void __syncthreads() {
    block_barrier->arrive_and_wait();
}
template <class T>
T __ldg(const T* address) {
    return *address;
}

// For threads that only read what they have written themselves.
inline void __syncwarp() {}
inline void __threadfence() {}
inline unsigned atomicAdd(unsigned* address, unsigned more) {
    return __atomic_fetch_add(address, more, __ATOMIC_SEQ_CST);
}

template <class Call>
void launch(Index blocks, Index threads, Call call) {
    gridDim = blocks;
    blockDim = threads;
    for (unsigned block = 0; block < blocks.x * blocks.y; ++block) {
        std::barrier<> barrier(threads.x * threads.y);
        block_barrier = &barrier;
        std::vector<std::thread> running;
        for (unsigned thread = 0; thread < threads.x * threads.y; ++thread) {
            running.emplace_back([=] {
                threadIdx = {thread % threads.x, thread / threads.x, 0};
                blockIdx = {block % blocks.x, block / blocks.x, 0};
                call();
                block_barrier->arrive_and_drop();
            });
        }
        for (std::thread& one : running) {
            one.join();
        }
    }
}
