// kernelviz/ops/kernels/headers/bulk.cuh, and the barriers of tma.cuh, for the processor. A copy happens at once, or as late as it may: when no thread
// can go on without it.
#pragma once
#include <deque>
#include <map>

#include "packed.cuh"

struct Mbarrier {
    int expected = 0, pending = 0;
    long long bytes = 0;
    unsigned phase = 0;
};
static std::map<unsigned, Mbarrier> mbarriers;
static std::deque<std::function<void()>> bulk_copies;  // that have not happened

inline void complete(Mbarrier& barrier) {
    if (barrier.pending == 0 && barrier.bytes == 0) {
        barrier.pending = barrier.expected;
        ++barrier.phase;
        ++progress;
    }
}
inline void barrier_init(unsigned barrier, int arrivals) {
    in_shared(barrier, 8);
    mbarriers[barrier] = {arrivals, arrivals, 0, 0};
    when_stuck = [] {
        if (bulk_copies.empty()) {
            return false;
        }
        bulk_copies.front()();
        bulk_copies.pop_front();
        return true;
    };
}
inline void barrier_init_done() {}
inline void barrier_wait(unsigned barrier, int parity) {
    if (!mbarriers.count(barrier)) {
        fail("wait at a barrier that was not initialised");
    }
    while (static_cast<int>(mbarriers[barrier].phase & 1) == parity) {
        give_way();
    }
}
inline void barrier_arrive(unsigned barrier) {
    if (--mbarriers[barrier].pending < 0) {
        fail("too many arrivals at a barrier");
    }
    complete(mbarriers[barrier]);
}
inline void barrier_expect(unsigned barrier, int bytes) {
    mbarriers[barrier].bytes += bytes;
    barrier_arrive(barrier);
}

inline void copy_bulk(unsigned to, const char* from, int bytes, unsigned barrier) {
    const unsigned char* source = reinterpret_cast<const unsigned char*>(from);
    if (to % 16 || bytes % 16 || reinterpret_cast<unsigned long long>(from) % 16) {
        fail("a bulk copy that is not aligned");
    }
    if (source < readable_begin[1] || source + bytes > readable_end[1]) {
        fail("a bulk copy reads outside of B");
        return;
    }
    in_shared(to, 16);
    in_shared(to + bytes - 16, 16);
    const auto copy = [=] {
        memcpy(in_shared(to, 16), source, bytes);
        mbarriers[barrier].bytes -= bytes;
        complete(mbarriers[barrier]);
    };
    if (copies_at_once) {
        copy();
    } else {
        bulk_copies.push_back(copy);
    }
}
inline void prefetch_to_l2(const char* from) {
    const unsigned char* source = reinterpret_cast<const unsigned char*>(from);
    if (source < readable_begin[0] || source >= readable_end[0]) {
        fail("a prefetch outside of scales and zero points");
    }
}
inline void write_shared(unsigned to, float first, float second) {
    write_shared(to, first);
    write_shared(to + 4, second);
}
inline void read_shared(float& first, float& second, unsigned from) {
    first = read_shared(from);
    second = read_shared(from + 4);
}
inline float of_lane(float value, int lane) {
    struct Exchange {
        float number;
        int from;
    } mine{value, lane};
    float other;
    together({0, 0, &other, &mine, nullptr, true}, [](WarpLane* lanes) {
        for (unsigned i = 0; i < WARP; ++i) {
            const int from = static_cast<const Exchange*>(lanes[i].a)->from;
            *static_cast<float*>(lanes[i].to) = static_cast<const Exchange*>(lanes[from].a)->number;
        }
    });
    return other;
}
