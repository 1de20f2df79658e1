// Runs kernels of CUDA C++ for Hopper on the processor: the threads of a cluster are fibers, each block has shared memory and mbarriers of its own.
// TMA copies, stores and wgmma are asynchronous: with `late` each of them takes place as late as the waits of the kernel allow (copies when all
// threads wait), else at once. So a missing wait gives wrong numbers in one of the two modes, and a missing arrival ends with an error.
// What it cannot show: time, the order of memory accesses within a warp, register limits.
#pragma once
#include <ucontext.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__

struct Index {
    unsigned x, y, z;
};
constexpr unsigned WARP = 32, WARPGROUP_THREADS = 128, STACK_BYTES = 128 * 1024, MOST_SHARED_BYTES = 232448;
constexpr unsigned SHARED_BASE = 1040;  // not a multiple of 1024: the kernel has to align it
static Index threadIdx, blockIdx, gridDim;
static bool late, in_reverse;
static std::string first_error;
inline void fail(const std::string& what) {
    if (first_error.empty()) {
        first_error = what + " (block " + std::to_string(blockIdx.x) + ", thread " + std::to_string(threadIdx.x) + ")";
    }
}
inline int min(int a, int b) { return a < b ? a : b; }
template <class T> T __ldg(const T* address) { return *address; }

struct Meeting {
    unsigned arrived = 0, generation = 0;
};
struct Mbarrier {
    int arrivals = 0, pending = 0, bytes = 0, phase = 0;
};
// What the threads of a warpgroup give to an instruction of all of them.
struct Lane {
    void* to;
    unsigned long long a, b;
    unsigned address, values[4];
    int add;
};
struct Block {
    std::vector<unsigned char> shared;
    std::map<unsigned, Mbarrier> barriers;
    std::map<unsigned, Meeting> meetings;
    std::vector<Lane> lanes;
    // Products of each warpgroup: those since the last commit, and groups that were not waited for.
    std::vector<std::vector<std::function<void()>>> begun;
    std::vector<std::vector<std::vector<std::function<void()>>>> running;
};
struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done = false;
    unsigned thread, block;
    std::vector<std::function<void()>> begun;
    std::deque<std::vector<std::function<void()>>> stores;  // groups that were not waited for
};
static std::vector<Fiber> fibers;
static std::vector<Block> blocks_of_cluster;
static Meeting cluster_meeting;
static std::deque<std::function<void()>> copies;
static ucontext_t scheduler;
static unsigned current, threads_of_block, shared_size;
static unsigned long long progress;
static std::function<void()> kernel_call;

inline Block& block() { return blocks_of_cluster[fibers[current].block]; }
inline void pause_fiber() { swapcontext(&fibers[current].context, &scheduler); }
// The last of `expected` threads runs `last` for all of them.
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
        pause_fiber();
    }
}
enum { OF_BLOCK = 0, OF_WARPGROUP = 100, OF_WGMMA = 200, OF_WARP = 300 };
inline void __syncthreads() { meet(block().meetings[OF_BLOCK], threads_of_block); }
inline void __syncwarp() { meet(block().meetings[OF_WARP + threadIdx.x / WARP], WARP); }
inline unsigned char* in_shared(unsigned of_block, unsigned address, unsigned bytes) {
    if (address < SHARED_BASE || address + bytes > SHARED_BASE + shared_size) {
        fail("outside of shared memory: " + std::to_string(address));
        return blocks_of_cluster[of_block].shared.data();
    }
    return blocks_of_cluster[of_block].shared.data() + (address - SHARED_BASE);
}
// The 128-byte swizzle of TMA and wgmma, a function of the address: 16-byte parts of a row of 128 bytes change places by the number of the row.
inline unsigned swizzled(unsigned address) { return address ^ (address >> 7 & 7) << 4; }

inline void run_fiber() {
    kernel_call();
    fibers[current].done = true;
    ++progress;
}
inline void launch(unsigned blocks, unsigned threads, unsigned cluster, unsigned shared, std::function<void()> call) {
    gridDim = {blocks, 1, 1};
    threads_of_block = threads;
    shared_size = shared;
    kernel_call = call;
    for (unsigned first = 0; first < blocks && first_error.empty(); first += cluster) {
        blocks_of_cluster = std::vector<Block>(cluster);
        cluster_meeting = {};
        copies.clear();
        for (Block& one : blocks_of_cluster) {
            one.shared.assign(shared, 0xff);  // not a number
            one.lanes.resize(threads);
            one.begun.resize(threads / WARPGROUP_THREADS);
            one.running.resize(threads / WARPGROUP_THREADS);
        }
        fibers = std::vector<Fiber>(cluster * threads);
        for (unsigned i = 0; i < fibers.size(); ++i) {
            Fiber& fiber = fibers[i];
            getcontext(&fiber.context);
            fiber.stack.reset(new char[STACK_BYTES]);
            fiber.context.uc_stack.ss_sp = fiber.stack.get();
            fiber.context.uc_stack.ss_size = STACK_BYTES;
            fiber.context.uc_link = &scheduler;
            fiber.block = i / threads;
            fiber.thread = i % threads;
            makecontext(&fiber.context, run_fiber, 0);
        }
        for (bool more = true; more;) {
            const unsigned long long before = progress;
            for (unsigned i = 0; i < fibers.size(); ++i) {
                current = in_reverse ? fibers.size() - 1 - i : i;
                if (!fibers[current].done) {
                    threadIdx = {fibers[current].thread, 0, 0};
                    blockIdx = {first + fibers[current].block, 0, 0};
                    swapcontext(&scheduler, &fibers[current].context);
                }
            }
            more = progress != before;
            if (!more && !copies.empty()) {  // all threads wait: now a copy arrives
                copies.front()();
                copies.pop_front();
                more = true;
            }
        }
        for (const Fiber& fiber : fibers) {
            if (!fiber.done) {
                threadIdx = {fiber.thread, 0, 0};
                blockIdx = {first + fiber.block, 0, 0};
                fail("a thread waits for ever");
                break;
            }
        }
    }
}
