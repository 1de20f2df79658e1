// A fiber for each thread of a cluster: clusters run one after the other. A warp runs until all of its threads wait, then the next one, in the order of
// the threads or in reverse: so a missing barrier gives wrong numbers in one of the two. A wait that nothing ends is an error.
#pragma once
#include <sys/mman.h>
#if defined(__x86_64__) && !defined(PORTABLE_FIBERS)
#define OWN_SWITCH  // of stacks: ucontext makes a system call each time
#else
#include <ucontext.h>
#endif

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../emulator.h"

constexpr unsigned WARP = 32, WARPGROUP = 128, STACK_BYTES = 128 * 1024;

struct Launch {  // as tests/ops/emulator.py fills it
    unsigned kernel, grid_x, grid_y, threads_x, threads_y, cluster, shared_bytes, reverse, at_once;
    unsigned long long ranges;
    const unsigned char* const* readable;  // begin and end of each range
    const long long* arguments;
};
inline Launch now;
// Address of dynamic shared memory. It is aligned as its declaration says but at most to 128 bytes, because CUDA promises no more than 16: what needs
// 1024 bytes must align it.
inline unsigned shared_base;

struct Waiting {  // fibers that wait for the same, in a list
    int first = -1;
};
struct Meeting {
    unsigned arrived = 0, expected = 0;
    Waiting waiting;
};
struct Copy {  // cp.async
    unsigned char* to;
    const void* from;
    unsigned bytes;
    bool valid;
    void run() const { valid ? (void)memcpy(to, from, bytes) : (void)memset(to, 0, bytes); }
};
struct Map {  // what the tests pass as a tensor map of 128 bytes: boxes of at most 128 bytes across, swizzled by 128 bytes
    unsigned char* matrix;
    long long rows, columns, element_bytes, box_rows, box_bytes;
};
struct Store {
    unsigned from;
    Map map;
    int column, row;
    unsigned char* to = nullptr;  // of neighbouring bytes, without a map
    unsigned bytes = 0;
};
struct Lane {  // what a thread gives to an instruction of its warp
    unsigned address, values[4];
    void* to;
    const void *a, *b;
    bool valid;
};
struct Fiber {
#ifdef OWN_SWITCH
    void* stack_pointer;
#else
    ucontext_t context;
#endif
    unsigned thread, block;
    bool done = false, ready = true;
    int next = -1;  // that waits for the same
    Lane lane;
    std::vector<Copy> copies_begun;  // since the last commit
    std::deque<std::vector<Copy>> copies;
    std::vector<Store> stores_begun;
    std::deque<std::vector<Store>> stores;
    std::vector<std::pair<unsigned, unsigned>> unfenced;  // ranges of shared memory that TMA may not see yet
    unsigned products = 0;                                // that it has issued
    std::deque<unsigned> product_groups;                  // the product that each ends with
    bool products_fenced = false;
};
struct Product;
struct Warpgroup {
    Meeting meeting;
    std::deque<Product> products;  // that are not complete, and those that not every thread has issued
    unsigned first = 0;            // number of the first of them
};
struct Mbarrier {
    int expected = 0, pending = 0, phase = 0;
    long long bytes = 0;
    Waiting waiting;
};
struct Block {
    std::vector<unsigned char> shared;
    std::unordered_map<unsigned, Mbarrier> barriers;
    Meeting of_threads[16];
    std::vector<Meeting> of_warps;
    std::vector<Warpgroup> warpgroups;
    unsigned running;  // threads
};
inline std::string first_error;
inline std::vector<Fiber> fibers;
inline std::vector<Block> blocks;  // of the cluster
inline std::vector<unsigned> ready_of_warp;
inline Meeting of_cluster;
inline unsigned current;
inline bool in_fiber;

inline Fiber& fiber() { return fibers[current]; }
inline Block& block() { return blocks[fiber().block]; }
inline unsigned warp_of_block() { return fiber().thread / WARP; }
inline Fiber* first_of(unsigned threads) { return &fibers[current / threads * threads]; }
void give_way();
void fail(const std::string& what);

inline void wait_in(Waiting& list) {
    Fiber& mine = fiber();
    mine.next = list.first;
    list.first = current;
    mine.ready = false;
    --ready_of_warp[current / WARP];
    give_way();
}
inline void wake(Waiting& list) {
    for (int i = list.first; i >= 0; i = fibers[i].next) {
        fibers[i].ready = true;
        ++ready_of_warp[i / WARP];
    }
    list.first = -1;
}
// The last of `expected` threads runs `last` for all of them.
template <class LAST> void meet(Meeting& meeting, unsigned expected, LAST last) {
    if (meeting.arrived && meeting.expected != expected) {
        fail("threads expect different numbers of threads at a barrier");
    }
    meeting.expected = expected;
    if (++meeting.arrived < expected) {
        wait_in(meeting.waiting);
        return;
    }
    last();
    meeting.arrived = 0;
    wake(meeting.waiting);
}
inline void meet(Meeting& meeting, unsigned expected) {
    meet(meeting, expected, [] {});
}
// The last thread of a warp that arrives executes the instruction for all of them.
template <class INSTRUCTION> void together(const Lane& lane, INSTRUCTION instruction) {
    fiber().lane = lane;
    meet(block().of_warps[warp_of_block()], WARP, [&] { instruction(first_of(WARP)); });
}
bool deliver_load();
void check_end_of_thread();
