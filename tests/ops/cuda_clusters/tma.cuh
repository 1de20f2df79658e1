// kernelviz/ops/kernels/headers/tma.cuh for the processor: the same functions.
#pragma once
#include "cuda_clusters.h"

// In place of a tensor map: a matrix of 16-bit elements and the rows of a box of 64 columns.
struct Map {
    unsigned short* matrix;
    long long rows, columns, box_rows;
    char unused[128 - 4 * 8];
};
static_assert(sizeof(Map) == 128);

inline Mbarrier& barrier_at(Block& of, unsigned address) {
    if (!of.barriers.count(address)) {
        fail("a barrier that was not initialised");
    }
    return of.barriers[address];
}
inline void barrier_init(unsigned barrier, int arrivals) {
    in_shared(block(), barrier, 8);
    if (barrier % 8) {
        fail("a barrier is not aligned");
    }
    block().barriers[barrier] = {arrivals, arrivals, 0, 0};
}
inline void barrier_init_done() {}
inline void barrier_wait(unsigned barrier, int parity) {
    while (barrier_at(block(), barrier).parity == parity && first_error.empty()) {
        yield_to_others();
    }
}
inline void barrier_expect(unsigned barrier, int bytes) {
    Mbarrier& at = barrier_at(block(), barrier);
    at.bytes += bytes;
    --at.pending;
    at.advance();
}
inline void barrier_arrive_at(unsigned barrier, int of_block) {
    Mbarrier& at = barrier_at(blocks[of_block], barrier);
    --at.pending;
    at.advance();
}
inline int rank_in_cluster() { return rank(); }
inline void cluster_barrier() { meet(cluster_meeting, fibers.size()); }

inline void acquire_map(const char*) {}
inline void load_box_for(unsigned short to_blocks, unsigned to, const char* map, int column, int row, unsigned barrier) {
    if (to % 128) {
        fail("a box is not aligned");
    }
    const Map from = *reinterpret_cast<const Map*>(map);
    auto load = [=] {
        for (unsigned i = 0; i < blocks.size(); ++i) {
            if (to_blocks >> i & 1) {
                for (int r = 0; r < from.box_rows; ++r) {
                    for (int c = 0; c < 64; ++c) {
                        const bool inside = row + r >= 0 && row + r < from.rows && column + c < from.columns;
                        const unsigned short value = inside ? from.matrix[(row + r) * from.columns + column + c] : 0;
                        memcpy(in_shared(blocks[i], swizzled(to + 128 * r + 2 * c), 2), &value, 2);
                    }
                }
                Mbarrier& at = barrier_at(blocks[i], barrier);
                at.bytes -= 128 * from.box_rows;
                at.advance();
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
    load_box_for(1 << rank(), to, map, column, row, barrier);
}

inline void fence_for_tma() { fiber().unfenced = false; }
// An element must be written once only.
inline void store_box(unsigned from, const char* map, int column, int row) {
    const Map to = *reinterpret_cast<const Map*>(map);
    Block* mine = &block();
    for (unsigned i = 0; i < 128; ++i) {
        if (fibers[current / 128 * 128 + i].unfenced) {
            fail("TMA stores what it may not see yet");
        }
    }
    auto store = [=] {
        for (int r = 0; r < to.box_rows; ++r) {
            for (int c = 0; c < 64; ++c) {
                if (row + r < to.rows && column + c < to.columns) {
                    unsigned short& element = to.matrix[(row + r) * to.columns + column + c];
                    if (element != 0xffff) {
                        fail("an element is written twice");
                    }
                    memcpy(&element, in_shared(*mine, swizzled(from + 128 * r + 2 * c), 2), 2);
                }
            }
        }
    };
    if (at_once) {
        store();
    } else {
        fiber().begun.push_back(store);
    }
}
inline void store_commit() {
    fiber().stores.push_back(std::move(fiber().begun));
    fiber().begun.clear();
}
template <int Groups> void store_wait_read() {
    while (fiber().stores.size() > Groups) {
        for (auto& store : fiber().stores.front()) {
            store();
        }
        fiber().stores.pop_front();
    }
}
inline void store_wait() { store_wait_read<0>(); }
