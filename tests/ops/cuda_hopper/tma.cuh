// kernelviz/ops/kernels/headers/tma.cuh for the processor. A tensor map is a `Map` in 128 bytes.
#pragma once
#include "hopper.h"

struct Map {
    unsigned char* matrix;
    long long width, height, box_rows;  // elements of 2 bytes; boxes have 64 columns
};

inline void barrier_init(unsigned barrier, int arrivals) {
    if (barrier % 8) {
        fail("an mbarrier is not aligned");
    }
    block().barriers[barrier] = {arrivals, arrivals, 0, 0};
}
inline void barrier_init_done() {}
inline void change_barrier(unsigned of_block, unsigned barrier, int arrivals, int bytes) {
    auto& known = blocks_of_cluster[of_block].barriers;
    if (!known.count(barrier)) {
        fail("an mbarrier was not initialised");
        return;
    }
    Mbarrier& one = known[barrier];
    one.pending -= arrivals;
    one.bytes += bytes;
    if (one.pending < 0) {
        fail("more arrivals than an mbarrier expects");
    }
    if (one.pending == 0 && one.bytes == 0) {
        ++one.phase;
        one.pending = one.arrivals;
        ++progress;
    }
}
inline void barrier_wait(unsigned barrier, int parity) {
    while (block().barriers[barrier].phase % 2 == parity) {
        pause_fiber();
    }
}
inline void barrier_expect(unsigned barrier, int bytes) { change_barrier(fibers[current].block, barrier, 1, bytes); }
inline void barrier_arrive_at(unsigned barrier, int of_block) { change_barrier(of_block, barrier, 1, 0); }

inline int rank_in_cluster() { return fibers[current].block; }
inline void cluster_barrier() { meet(cluster_meeting, fibers.size()); }

inline void acquire_map(const char*) {}
inline void load_box_for(unsigned short blocks, unsigned to, const char* map, int column, int row, unsigned barrier) {
    if (to % 1024) {
        fail("a box is not aligned to its swizzle");
    }
    const auto copy = [=] {
        const Map& from = *reinterpret_cast<const Map*>(map);
        for (unsigned of_block = 0; of_block < blocks_of_cluster.size(); ++of_block) {
            if (blocks >> of_block & 1) {
                for (long long r = 0; r < from.box_rows; ++r) {
                    for (long long c = 0; c < 64; ++c) {
                        const bool inside = row + r < from.height && column + c < from.width;
                        const unsigned address = swizzled(to + r * 128 + c * 2);
                        unsigned char* element = in_shared(of_block, address, 2);
                        inside ? memcpy(element, from.matrix + ((row + r) * from.width + column + c) * 2, 2) : memset(element, 0, 2);
                    }
                }
                change_barrier(of_block, barrier, 0, -(int)from.box_rows * 128);
            }
        }
    };
    ++progress;
    if (late) {
        copies.push_back(copy);
    } else {
        copy();
    }
}
inline void load_box(unsigned to, const char* map, int column, int row, unsigned barrier) {
    load_box_for(1 << fibers[current].block, to, map, column, row, barrier);
}

inline void fence_for_tma() {}
inline void store_box(unsigned from, const char* map, int column, int row) {
    const unsigned of_block = fibers[current].block;
    fibers[current].begun.push_back([=] {
        const Map& to = *reinterpret_cast<const Map*>(map);
        for (long long r = 0; r < to.box_rows; ++r) {
            for (long long c = 0; c < 64; ++c) {
                if (row + r < to.height && column + c < to.width) {
                    memcpy(to.matrix + ((row + r) * to.width + column + c) * 2, in_shared(of_block, swizzled(from + r * 128 + c * 2), 2), 2);
                }
            }
        }
    });
}
inline void wait_for_stores(unsigned pending) {
    auto& stores = fibers[current].stores;
    while (stores.size() > pending) {
        for (const auto& store : stores.front()) {
            store();
        }
        stores.pop_front();
    }
}
inline void store_commit() {
    fibers[current].stores.push_back(std::move(fibers[current].begun));
    fibers[current].begun.clear();
    if (!late) {
        wait_for_stores(0);
    }
}
template <int Groups> void store_wait_read() { wait_for_stores(Groups); }
inline void store_wait() { wait_for_stores(0); }
