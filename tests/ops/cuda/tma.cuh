// kernelviz/ops/kernels/headers/tma.cuh for the processor: the same functions.
#pragma once
#include "cuda_warpgroups.h"

// What the tests pass as a tensor map of 128 bytes.
struct alignas(128) TensorMap {
    unsigned char* matrix;
    int rows, columns, itemsize, box_rows, swizzled;
};

inline void complete(Mbarrier& barrier) {
    if (barrier.pending == 0 && barrier.bytes == 0) {
        barrier.pending = barrier.expected;
        ++barrier.phase;
        ++progress;
    }
}
inline void arrive(Block& of, unsigned address) {
    Mbarrier& barrier = of.barriers[address];
    if (--barrier.pending < 0) {
        fail("too many arrivals at a barrier");
    }
    complete(barrier);
}
inline void barrier_init(unsigned barrier, int arrivals) {
    in_shared(block(), barrier, 8);
    block().barriers[barrier] = {arrivals, arrivals, 0, 0};
}
inline void barrier_init_done() {}
inline void barrier_wait(unsigned barrier, int parity) {
    if (!block().barriers.count(barrier)) {
        fail("wait at a barrier that was not initialised");
    }
    while ((int)(block().barriers[barrier].phase & 1) == parity) {
        give_way();
    }
}
inline void barrier_expect(unsigned barrier, int bytes) {
    block().barriers[barrier].bytes += bytes;
    arrive(block(), barrier);
}
inline void barrier_arrive(unsigned barrier) { arrive(block(), barrier); }
inline void barrier_arrive_at(unsigned barrier, int of) { arrive(cluster[of], barrier); }

inline int rank_in_cluster() { return self / blockDim.x; }
inline void cluster_barrier() { meet(cluster_meeting, fibers.size()); }

inline void acquire_map(const char*) {}
inline unsigned swizzled(unsigned address) { return address ^ (address >> 3 & 0x70); }
inline void load_box_for(unsigned short blocks, unsigned to, const char* map, int column, int row, unsigned barrier) {
    const TensorMap one = *reinterpret_cast<const TensorMap*>(map);
    if (to % (one.swizzled ? 1024 : 128)) {
        fail("a box that does not begin where its swizzle does");
    }
    const auto load = [=] {
        for (unsigned of = 0; of < cluster.size(); ++of) {
            if (blocks >> of & 1) {
                for (int i = 0; i < one.box_rows; ++i) {
                    for (int j = 0; j < 128 / one.itemsize; ++j) {
                        const unsigned address = to + i * 128 + j * one.itemsize;
                        unsigned char* into = in_shared(cluster[of], one.swizzled ? swizzled(address) : address, one.itemsize);
                        if (row + i < one.rows && column + j < one.columns) {
                            memcpy(into, one.matrix + ((long long)(row + i) * one.columns + column + j) * one.itemsize, one.itemsize);
                        } else {
                            memset(into, 0, one.itemsize);
                        }
                    }
                }
                Mbarrier& reported = cluster[of].barriers[barrier];
                reported.bytes -= one.box_rows * 128;
                complete(reported);
            }
        }
    };
    if (at_once) {
        load();
    } else {
        loads.push_back(load);
    }
}
inline void load_box(unsigned to, const char* map, int column, int row, unsigned barrier) {
    load_box_for(1 << rank_in_cluster(), to, map, column, row, barrier);
}
inline void fence_for_tma() {}
inline void store_box(unsigned from, const char* map, int column, int row) {
    const TensorMap one = *reinterpret_cast<const TensorMap*>(map);
    Block* const of = &block();
    const auto store = [=] {
        for (int i = 0; i < one.box_rows && row + i < one.rows; ++i) {
            for (int j = 0; j < 128 / one.itemsize && column + j < one.columns; ++j) {
                const unsigned address = from + i * 128 + j * one.itemsize;
                memcpy(one.matrix + ((long long)(row + i) * one.columns + column + j) * one.itemsize,
                       in_shared(*of, one.swizzled ? swizzled(address) : address, one.itemsize), one.itemsize);
            }
        }
    };
    if (at_once) {
        store();
    } else {
        fibers[self].begun.push_back(store);
    }
}
inline void store_commit() {
    fibers[self].stores.push_back(std::move(fibers[self].begun));
    fibers[self].begun.clear();
}
inline void finish_stores(unsigned left) {
    for (auto& stores = fibers[self].stores; stores.size() > left; stores.pop_front()) {
        for (const auto& store : stores.front()) {
            store();
        }
    }
}
template <int Groups> inline void store_wait_read() { finish_stores(Groups); }
inline void store_wait() { finish_stores(0); }
