// Runs kernels of CUDA C++ on the processor, with a fiber for each thread of a block, one block after the other. The threads of a warp meet at
// instructions of the whole warp (mma.cuh), those of a block at __syncthreads(). A warp runs until all of its threads wait for the block, then the
// next one, in the order of the threads or in reverse: so a missing barrier gives wrong numbers in one of the two. What it cannot show: time.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using std::min;

struct Index {
    unsigned x, y, z;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __restrict__

constexpr unsigned WARP = 32, STACK_BYTES = 256 * 1024, MOST_SHARED_BYTES = 232448;
static Index threadIdx, blockIdx, blockDim, gridDim;
static std::string first_error;
static bool in_reverse, copies_at_once;
inline void fail(const std::string& what) {
    if (first_error.empty()) {
        first_error = what + " (thread " + std::to_string(threadIdx.x) + ")";
    }
}

// What a thread gives to an instruction of its warp: an address in shared memory, registers, and anything else.
struct WarpLane {
    unsigned thread, address;
    void* to;
    const void *a, *b;
    bool valid;
};
using Together = void (*)(WarpLane*);

struct Barrier {
    unsigned arrived = 0, generation = 0;
};
struct Warp {
    Barrier barrier;
    WarpLane lanes[WARP];
};
struct Copy {
    unsigned char* to;
    const void* from;
    int bytes;
    bool valid;
    void run() const { valid ? memcpy(to, from, bytes) : memset(to, 0, bytes); }
};
struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done = false;
    std::vector<Copy> begun;               // since the last commit
    std::vector<std::vector<Copy>> groups;  // that were not waited for
};
static std::vector<Fiber> fibers;
static std::vector<Warp> warps;
static Barrier block_barrier;
static ucontext_t scheduler;
static unsigned long long progress;  // barriers that were completed and threads that ended
static std::function<void()> kernel_call;

static std::function<bool()> when_stuck;  // whether something happened that threads may wait for
inline void give_way() {
    const unsigned thread = threadIdx.x;
    swapcontext(&fibers[thread].context, &scheduler);
    threadIdx = {thread, 0, 0};
}
inline void wait_at(Barrier& barrier, unsigned expected, const std::function<void()>& last = [] {}) {
    const unsigned generation = barrier.generation;
    if (++barrier.arrived == expected) {
        last();
        barrier.arrived = 0;
        ++barrier.generation;
        ++progress;
        return;
    }
    while (barrier.generation == generation) {
        give_way();
    }
}
inline void __syncthreads() { wait_at(block_barrier, blockDim.x); }
inline void __syncwarp() { wait_at(warps[threadIdx.x / WARP].barrier, WARP); }
// The last thread of a warp that arrives executes the instruction for all of them.
inline void together(WarpLane lane, Together instruction) {
    Warp& warp = warps[threadIdx.x / WARP];
    lane.thread = threadIdx.x;
    warp.lanes[threadIdx.x % WARP] = lane;
    wait_at(warp.barrier, WARP, [&] { instruction(warp.lanes); });
}

static unsigned char shared_bytes[MOST_SHARED_BYTES];
constexpr unsigned SHARED_BASE = 1024;
static unsigned shared_size;
inline unsigned shared_memory() { return SHARED_BASE; }
inline unsigned char* in_shared(unsigned address, unsigned bytes) {
    if (address < SHARED_BASE || address + bytes > SHARED_BASE + shared_size) {
        fail("outside of shared memory: " + std::to_string(address));
        return shared_bytes;
    }
    if (address % bytes) {
        fail("address in shared memory is not a multiple of " + std::to_string(bytes));
    }
    return shared_bytes + (address - SHARED_BASE);
}

inline void run_thread() {
    kernel_call();
    fibers[threadIdx.x].done = true;
    ++progress;
}
// Runs all blocks. Shared memory begins as numbers that are not a number in every floating-point format.
inline void launch(unsigned blocks, unsigned threads, unsigned shared, std::function<void()> call) {
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    shared_size = shared;
    kernel_call = call;
    for (unsigned block = 0; block < blocks && first_error.empty(); ++block) {
        memset(shared_bytes, 0xff, sizeof shared_bytes);
        fibers = std::vector<Fiber>(threads);
        warps = std::vector<Warp>(threads / WARP);
        block_barrier = {};
        blockIdx = {block, 0, 0};
        for (Fiber& fiber : fibers) {
            getcontext(&fiber.context);
            fiber.stack = std::make_unique<char[]>(STACK_BYTES);
            fiber.context.uc_stack.ss_sp = fiber.stack.get();
            fiber.context.uc_stack.ss_size = STACK_BYTES;
            fiber.context.uc_link = &scheduler;
            makecontext(&fiber.context, run_thread, 0);
        }
        for (unsigned long long before = progress - 1; before != progress;) {
            before = progress;
            for (unsigned i = 0; i < threads / WARP; ++i) {
                const unsigned warp = in_reverse ? threads / WARP - 1 - i : i;
                for (unsigned long long before_warp = progress - 1; before_warp != progress;) {
                    before_warp = progress;
                    for (unsigned j = 0; j < WARP; ++j) {
                        const unsigned thread = warp * WARP + (in_reverse ? WARP - 1 - j : j);
                        if (!fibers[thread].done) {
                            threadIdx = {thread, 0, 0};
                            swapcontext(&scheduler, &fibers[thread].context);
                        }
                    }
                }
            }
            if (before == progress && when_stuck && when_stuck()) {
                ++progress;
            }
        }
        for (const Fiber& fiber : fibers) {
            if (!fiber.done) {
                fail("a thread waits at a barrier that the others do not reach");
                break;
            }
        }
    }
}
