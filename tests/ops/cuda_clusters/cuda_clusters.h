// Runs kernels of CUDA C++ for Hopper on the processor: a fiber for each thread of a cluster, one cluster after the other, with barriers in
// shared memory (mbarrier), copies by TMA and products of warpgroups. Copies and products happen as late as the instructions allow, or at once
// (`at_once`), and threads and clusters run in order or in reverse: what a kernel does not wait for gives wrong numbers in one of the two. A
// wait that never ends is an error. What it cannot show: time, and how many registers a thread has.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

using std::max;
using std::min;

struct Index {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__
#define __align__(bytes)

alignas(1024) unsigned char memory[16];  // only its address counts
constexpr unsigned SHARED_BASE = 1040;   // as little aligned as CUDA promises
inline unsigned __cvta_generic_to_shared(const void*) { return SHARED_BASE; }
template <class T> T __ldg(const T* at) { return *at; }

static Index threadIdx, blockIdx, blockDim, gridDim;
static std::string first_error;
static bool in_reverse, at_once;
static unsigned long long progress;  // whatever may end a wait
inline void fail(const std::string& what) {
    if (first_error.empty()) {
        first_error = what + " (block " + std::to_string(blockIdx.x) + ", thread " + std::to_string(threadIdx.x) + ")";
    }
}

struct Meeting {
    unsigned arrived = 0, generation = 0;
};
struct Mbarrier {
    int expected = 0, pending = 0, bytes = 0, parity = 0;

    void advance() {
        if (pending < 0) {
            fail("more arrivals at a barrier than it expects");
        }
        if (pending == 0 && bytes == 0) {
            parity ^= 1;
            pending = expected;
            ++progress;
        }
    }
};
struct Product {
    unsigned long long a, b;
    bool add;
    unsigned columns, issued = 0;
    float* sums[128];
    bool complete = false;
};
struct Warpgroup {
    Meeting meeting;
    std::deque<Product> products;  // that are not complete, and those that not every thread has issued
    unsigned first = 0;            // number of the first of them
};
struct Block {
    std::vector<unsigned char> shared;
    std::map<unsigned, Mbarrier> barriers;
    std::map<int, Meeting> meetings;  // by number of the warp or of the barrier
    std::vector<Warpgroup> warpgroups;
};
struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done = false, unfenced = false;
    std::vector<std::function<void()>> begun;
    std::deque<std::vector<std::function<void()>>> stores;  // groups of stores by TMA
    unsigned issued = 0;                                    // products
    std::deque<unsigned> committed;                         // products that each group ends with
};
static std::vector<Block> blocks;  // of the cluster that runs
static std::vector<Fiber> fibers;
static std::deque<std::function<void()>> loads;
static Meeting cluster_meeting;
static ucontext_t scheduler;
static unsigned current;  // fiber
static std::function<void()> kernel_call;

inline unsigned rank() { return current / blockDim.x; }
inline Block& block() { return blocks[rank()]; }
inline Fiber& fiber() { return fibers[current]; }
inline Warpgroup& warpgroup() { return block().warpgroups[threadIdx.x / 128]; }

inline void yield_to_others() {
    const unsigned mine = current;
    const unsigned first_block = blockIdx.x - rank();
    swapcontext(&fibers[mine].context, &scheduler);
    current = mine;
    threadIdx = {mine % blockDim.x, 0, 0};
    blockIdx = {first_block + mine / blockDim.x, 0, 0};
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
        yield_to_others();
    }
}
inline void __syncthreads() { meet(block().meetings[-1], blockDim.x); }
inline void __syncwarp() { meet(block().meetings[1000 + threadIdx.x / 32], 32); }

inline unsigned char* in_shared(Block& of, unsigned address, unsigned bytes) {
    if (address < SHARED_BASE || address + bytes > SHARED_BASE + of.shared.size()) {
        fail("outside of shared memory: " + std::to_string(address));
        return of.shared.data();
    }
    return of.shared.data() + (address - SHARED_BASE);
}
// TMA and wgmma exchange 16-byte parts of 128 bytes by bits 7 to 9 of the address.
inline unsigned swizzled(unsigned address) { return address ^ (address >> 7 & 7) << 4; }

inline void run_thread() {
    kernel_call();
    if (!fiber().stores.empty() || !fiber().begun.empty()) {
        fail("a thread ends before its stores");
    }
    fiber().done = true;
    ++progress;
}
inline void run_cluster(unsigned first_block, unsigned cluster, unsigned threads, unsigned shared_bytes) {
    blocks = std::vector<Block>(cluster);
    for (Block& one : blocks) {
        one.shared.assign(shared_bytes, 0xff);
        one.warpgroups = std::vector<Warpgroup>(threads / 128);
    }
    fibers = std::vector<Fiber>(cluster * threads);
    loads.clear();
    cluster_meeting = {};
    for (Fiber& one : fibers) {
        constexpr unsigned STACK_BYTES = 128 * 1024;
        getcontext(&one.context);
        one.stack = std::make_unique_for_overwrite<char[]>(STACK_BYTES);
        one.context.uc_stack.ss_sp = one.stack.get();
        one.context.uc_stack.ss_size = STACK_BYTES;
        one.context.uc_link = &scheduler;
        makecontext(&one.context, run_thread, 0);
    }
    for (unsigned long long before = progress - 1; before != progress && first_error.empty();) {
        before = progress;
        for (unsigned i = 0; i < fibers.size(); ++i) {
            current = in_reverse ? fibers.size() - 1 - i : i;
            if (!fibers[current].done) {
                threadIdx = {current % threads, 0, 0};
                blockIdx = {first_block + current / threads, 0, 0};
                swapcontext(&scheduler, &fibers[current].context);
            }
        }
        if (before == progress && !loads.empty()) {  // everybody waits: now a copy arrives
            auto load = std::move(loads.front());
            loads.pop_front();
            load();
            ++progress;
        }
    }
    for (unsigned i = 0; i < fibers.size() && first_error.empty(); ++i) {
        if (!fibers[i].done) {
            threadIdx = {i % threads, 0, 0};
            fail("a thread waits for ever");
        }
    }
}
inline void launch(unsigned count, unsigned cluster, unsigned threads, unsigned shared_bytes, std::function<void()> call) {
    gridDim = {count, 1, 1};
    blockDim = {threads, 1, 1};
    kernel_call = call;
    for (unsigned i = 0; i < count / cluster && first_error.empty(); ++i) {
        run_cluster((in_reverse ? count / cluster - 1 - i : i) * cluster, cluster, threads, shared_bytes);
    }
}
