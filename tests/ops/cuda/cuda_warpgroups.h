// Runs kernels with warpgroups, mbarriers, TMA and clusters on the processor: a fiber for each thread of a cluster, one cluster after the other. What is
// asynchronous (copies by TMA, products of warpgroups) happens at once, or as late as it may: products when a thread waits for them, loads when
// nothing else can go on, stores when their box is waited for. So what is read too early, or overwritten too early, gives wrong numbers in one
// of the two. A wait that nothing ends is an error. What it cannot show: time, and missing fences.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

using std::max;
using std::min;

struct Index {
    unsigned x, y, z;
};
struct float2 {
    float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
template <typename T> inline T __ldg(const T* from) { return *from; }

constexpr unsigned WARP = 32, GROUP_OF_WARPS = 128, STACK_BYTES = 128 * 1024, MOST_SHARED_BYTES = 232448, SHARED_BASE = 1024;
static Index threadIdx, blockIdx, blockDim, gridDim;
static std::string first_error;
static bool in_reverse, at_once;
inline void fail(const std::string& what) {
    if (first_error.empty()) {
        first_error = what + " (block " + std::to_string(blockIdx.x) + ", thread " + std::to_string(threadIdx.x) + ")";
    }
}

// --- fibers -----------------------------------------------------------------------------------------------------------------------
struct Product {  // of a warpgroup, as one of its threads starts it
    float* d;
    const unsigned* a;  // registers, or nullptr: then `a_tile`
    unsigned long long a_tile, b_tile;
    int add, columns;
};
struct Lane {  // what a thread gives to an instruction of its warp
    unsigned address, values[4];
};
struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done = false;
    Lane lane;
    std::vector<Product> started;
    std::deque<std::vector<Product>> products;  // groups that were not waited for
    std::vector<std::function<void()>> begun;
    std::deque<std::vector<std::function<void()>>> stores;
};
struct Meeting {
    unsigned arrived = 0, generation = 0;
};
struct Mbarrier {
    int expected = 0, pending = 0;
    long long bytes = 0;
    unsigned phase = 0;
};
struct Block {
    std::vector<unsigned char> shared;
    std::map<unsigned, Mbarrier> barriers;
    std::map<unsigned, Meeting> meetings;  // of the block (0), of a warpgroup (1 + …), of a warp (100 + …)
};
static std::vector<Fiber> fibers;
static std::vector<Block> cluster;
static Meeting cluster_meeting;
static std::deque<std::function<void()>> loads;  // that have not arrived
static ucontext_t scheduler;
static unsigned self, first_block;
static unsigned long long progress;
static std::function<void()> kernel_call;

inline void become(unsigned fiber) {
    self = fiber;
    threadIdx = {fiber % blockDim.x, 0, 0};
    blockIdx = {first_block + fiber / blockDim.x, 0, 0};
}
inline Block& block() { return cluster[self / blockDim.x]; }
inline void give_way() {
    const unsigned fiber = self;
    swapcontext(&fibers[fiber].context, &scheduler);
    become(fiber);
}
inline void meet(Meeting& meeting, unsigned expected, const std::function<void()>& last = [] {}) {
    const unsigned generation = meeting.generation;
    if (++meeting.arrived == expected) {
        last();
        meeting.arrived = 0;
        ++meeting.generation;
        ++progress;
        return;
    }
    while (meeting.generation == generation) {
        give_way();
    }
}
inline void __syncthreads() { meet(block().meetings[0], blockDim.x); }
inline void __syncwarp() { meet(block().meetings[100 + threadIdx.x / WARP], WARP); }
inline void warpgroup_barrier(int warpgroup) { meet(block().meetings[1 + warpgroup], GROUP_OF_WARPS); }
inline Fiber* first_of(unsigned threads) { return &fibers[self / threads * threads]; }
// The last thread of a warp that arrives executes the instruction for all of them.
inline void together(const Lane& lane, const std::function<void(Fiber*)>& instruction) {
    fibers[self].lane = lane;
    meet(block().meetings[200 + threadIdx.x / WARP], WARP, [&] { instruction(first_of(WARP)); });
}

inline unsigned char* in_shared(Block& of, unsigned address, unsigned bytes) {
    if (address < SHARED_BASE || address + bytes > SHARED_BASE + of.shared.size()) {
        fail("outside of shared memory: " + std::to_string(address));
        return of.shared.data();
    }
    return of.shared.data() + (address - SHARED_BASE);
}
// As many threads at a time as fill 128 bytes must touch each bank of 4 bytes once.
inline void check_banks(const Fiber* lanes, unsigned first, unsigned count, unsigned bytes, const char* what) {
    bool used[32] = {};
    for (unsigned i = first; i < first + count; ++i) {
        if (lanes[i].lane.address % bytes) {
            fail(std::string("address that is not aligned, of ") + what);
        }
        for (unsigned word = lanes[i].lane.address / 4; word < (lanes[i].lane.address + bytes) / 4; ++word) {
            if (used[word % 32]) {
                fail(std::string("bank conflict of ") + what);
            }
            used[word % 32] = true;
        }
    }
}

inline void run_thread() {
    kernel_call();
    if (!fibers[self].started.empty() || !fibers[self].products.empty()) {
        fail("products that nobody waits for");
    }
    if (!fibers[self].begun.empty() || !fibers[self].stores.empty()) {
        fail("a store that nobody waits for");
    }
    fibers[self].done = true;
    ++progress;
}
// Runs all blocks. Shared memory begins as numbers that are not a number in every floating-point format.
inline void launch(unsigned blocks, unsigned blocks_a_cluster, unsigned threads, unsigned shared, std::function<void()> call) {
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    kernel_call = call;
    for (first_block = 0; first_block < blocks && first_error.empty(); first_block += blocks_a_cluster) {
        cluster = std::vector<Block>(blocks_a_cluster);
        for (Block& one : cluster) {
            one.shared.assign(shared, 0xff);
        }
        cluster_meeting = {};
        fibers = std::vector<Fiber>(threads * blocks_a_cluster);
        for (Fiber& fiber : fibers) {
            getcontext(&fiber.context);
            fiber.stack = std::make_unique<char[]>(STACK_BYTES);
            fiber.context.uc_stack.ss_sp = fiber.stack.get();
            fiber.context.uc_stack.ss_size = STACK_BYTES;
            fiber.context.uc_link = &scheduler;
            makecontext(&fiber.context, run_thread, 0);
        }
        for (unsigned long long before = progress - 1; before != progress && first_error.empty();) {
            before = progress;
            for (unsigned i = 0; i < fibers.size(); ++i) {
                const unsigned fiber = in_reverse ? fibers.size() - 1 - i : i;
                if (!fibers[fiber].done) {
                    become(fiber);
                    swapcontext(&scheduler, &fibers[fiber].context);
                }
            }
            if (before == progress && !loads.empty()) {
                const std::function<void()> load = loads.front();
                loads.pop_front();
                load();
                ++progress;
            }
        }
        for (unsigned fiber = 0; fiber < fibers.size(); ++fiber) {
            if (!fibers[fiber].done) {
                become(fiber);
                fail("a thread waits for what never happens");
            }
        }
        if (!loads.empty()) {
            fail("a load that nobody waits for");
            loads.clear();
        }
    }
}
