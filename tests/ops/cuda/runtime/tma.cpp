// mbarriers, clusters and TMA. Loads arrive where they are issued, or one after the other when no thread can go on; stores happen where they are
// issued, or where their thread waits for them.
#include <algorithm>

#include "shared_memory.h"

struct Load {
    unsigned blocks, to;
    Map map;
    int column, row;
    unsigned barrier;
    const unsigned char* from = nullptr;  // of neighbouring bytes, without a map
    unsigned bytes = 0;
    std::vector<unsigned char> gathered;  // rows of 128 bytes that a box of an image or of filters has
};
static std::deque<Load> loads;
constexpr unsigned BOX_PITCH = 128;

static Mbarrier* barrier_at(Block& of, unsigned address) {
    const auto found = of.barriers.find(address);
    if (found == of.barriers.end()) {
        fail("an mbarrier was not initialised");
        return nullptr;
    }
    return &found->second;
}
static void change(Block& of, unsigned address, int arrivals, long long bytes) {
    Mbarrier* one = barrier_at(of, address);
    if (!one) {
        return;
    }
    one->pending -= arrivals;
    one->bytes += bytes;
    if (one->pending < 0) {
        fail("more arrivals than an mbarrier expects");
    }
    if (one->pending == 0 && one->bytes == 0) {
        ++one->phase;
        one->pending = one->expected;
        wake(one->waiting);
    }
}
static void run_of_bytes(const Load& load) {
    Block& to = blocks[load.blocks];
    if (!to.running) {
        fail("a copy to a block that has ended");
    }
    for (unsigned i = 0; i < load.bytes; i += 16) {
        memcpy(in_shared(to, load.to + i, 16), load.from + i, 16);
    }
    change(to, load.barrier, 0, -(long long)load.bytes);
}
static void run_of_rows(const Load& load) {
    Block& to = blocks[load.blocks];
    if (!to.running) {
        fail("a copy to a block that has ended");
    }
    for (unsigned i = 0; i < load.gathered.size(); i += 16) {
        memcpy(in_shared(to, swizzled(load.to + i), 16), &load.gathered[i], 16);
    }
    change(to, load.barrier, 0, -(long long)load.gathered.size());
}
static void run(const Load& load) {
    if (!load.gathered.empty()) {
        run_of_rows(load);
        return;
    }
    if (load.from) {
        run_of_bytes(load);
        return;
    }
    const Map& from = load.map;
    const unsigned bytes = from.element_bytes, part = 16 / bytes;
    for (unsigned i = 0; i < blocks.size(); ++i) {
        if (!(load.blocks >> i & 1)) {
            continue;
        }
        if (!blocks[i].running) {
            fail("a load to a block of the cluster that has ended");
        }
        for (long long r = 0; r < from.box_rows; ++r) {
            const bool row_inside = load.row + r >= 0 && load.row + r < from.rows;
            const unsigned char* row = from.matrix + (load.row + r) * from.columns * bytes;
            for (unsigned c = 0; c < from.box_bytes / bytes; c += part) {
                unsigned char* to = in_shared(blocks[i], swizzled(load.to + r * BOX_PITCH + c * bytes), 16);
                const long long column = load.column + (long long)c;
                const long long inside = row_inside && column >= 0 ? std::max(0ll, std::min<long long>(part, from.columns - column)) : 0;
                if (inside) {
                    memcpy(to, row + column * bytes, inside * bytes);
                }
                memset(to + inside * bytes, 0, 16 - inside * bytes);
            }
        }
        change(blocks[i], load.barrier, 0, -from.box_rows * from.box_bytes);
    }
}
bool deliver_load() {
    if (loads.empty()) {
        return false;
    }
    const Load load = loads.front();
    loads.pop_front();
    run(load);
    return true;
}
void forget_loads() { loads.clear(); }

static void run(const Store& store) {
    if (store.to) {
        for (unsigned i = 0; i < store.bytes; i += 16) {
            memcpy(store.to + i, in_shared(store.from + i, 16), 16);
        }
        return;
    }
    const Map& to = store.map;
    const unsigned bytes = to.element_bytes;
    static const unsigned char unwritten[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    for (long long r = 0; r < to.box_rows && store.row + r < to.rows; ++r) {
        for (long long c = 0; c < to.box_bytes / bytes && store.column + c < to.columns; ++c) {
            unsigned char* element = to.matrix + ((store.row + r) * to.columns + store.column + c) * bytes;
            if (memcmp(element, unwritten, bytes)) {
                fail("an element is written twice");
            }
            memcpy(element, in_shared(swizzled(store.from + r * BOX_PITCH + c * bytes), bytes), bytes);
        }
    }
}

namespace emulated {
void barrier_init(unsigned barrier, int arrivals) {
    in_shared(barrier, 8);
    Mbarrier& one = block().barriers[barrier];
    one = {};
    one.expected = one.pending = arrivals;
}
void barrier_wait(unsigned barrier, int parity) {
    Mbarrier* one = barrier_at(block(), barrier);
    while ((one->phase & 1) == parity) {
        wait_in(one->waiting);
    }
}
void barrier_expect(unsigned barrier, int bytes) { change(block(), barrier, 1, bytes); }
void barrier_arrive(unsigned barrier, int of_block) {
    if (!blocks[of_block].running) {
        fail("an arrival at a block of the cluster that has ended");
    }
    change(blocks[of_block], barrier, 1, 0);
}
int rank_in_cluster() { return fiber().block; }
void cluster_barrier() { meet(of_cluster, fibers.size()); }

void load_box(unsigned short to_blocks, unsigned to, const char* map, int column, int row, unsigned barrier) {
    if (to % 1024) {
        fail("a box does not begin where its swizzle does");
    }
    if (to_blocks >> blocks.size()) {
        fail("a load to blocks that the cluster does not have");
    }
    Load load{to_blocks, to, {}, column, row, barrier};
    memcpy(&load.map, map, sizeof(Map));
    if (now.at_once) {
        run(load);
    } else {
        loads.push_back(load);
    }
}
void copy_bulk(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
    const unsigned char* begin = static_cast<const unsigned char*>(from);
    if (to % 16 || bytes % 16 || reinterpret_cast<std::uintptr_t>(from) % 16) {
        fail("a bulk copy that is not aligned");
    }
    check_inside(from, bytes, 0, "a bulk copy");
    const Load load{(unsigned)rank_in_cluster(), to, {}, 0, 0, barrier, begin, bytes};
    if (now.at_once) {
        run(load);
    } else {
        loads.push_back(load);
    }
}
// What the tests pass as a map of images (Windows) or of filters (Taps), of elements of 16 bits.
struct Windows {
    const unsigned char* images;
    long long n, h, w, c, pixels, side, stride;
};
struct Taps {
    const unsigned char* filters;
    long long k, taps, c, rows;
};
static void load_rows(Load load) {
    if (load.to % 1024) {
        fail("a box does not begin where its swizzle does");
    }
    if (now.at_once) {
        run(load);
    } else {
        loads.push_back(load);
    }
}
// The channels of a box that exist; the row is zeros before.
static void gather(unsigned char* row, const unsigned char* channels, int channel, long long c) {
    if (channel < c) {
        memcpy(row, channels + 2 * channel, 2 * std::min(64ll, c - channel));
    }
}
// PTX ISA, "im2col mode": the upper left pixel goes through a box of columns, then rows, then images, in steps of the stride.
void load_windows(unsigned to, const char* map, int channel, int column, int row, int image, int tap_column, int tap_row, unsigned barrier) {
    Windows of;
    memcpy(&of, map, sizeof of);
    const long long lower = -(of.side / 2), upper = of.side / 2 - (of.side - 1);
    if (column < lower || column >= of.w + upper || row < lower || row >= of.h + upper) {
        fail("a window begins outside of its box");
    }
    Load load{(unsigned)rank_in_cluster(), to, {}, 0, 0, barrier};
    load.gathered.resize(of.pixels * BOX_PITCH);
    for (long long i = 0, x = column, y = row, z = image; i < of.pixels; ++i) {
        const long long across = x + tap_column, down = y + tap_row;
        if (across >= 0 && across < of.w && down >= 0 && down < of.h && z < of.n) {
            gather(&load.gathered[i * BOX_PITCH], of.images + ((z * of.h + down) * of.w + across) * of.c * 2, channel, of.c);
        }
        if ((x += of.stride) >= of.w + upper) {
            x = lower;
            if ((y += of.stride) >= of.h + upper) {
                y = lower;
                ++z;
            }
        }
    }
    load_rows(load);
}
void load_taps(unsigned to, const char* map, int channel, int tap, int filter, unsigned barrier) {
    Taps of;
    memcpy(&of, map, sizeof of);
    Load load{(unsigned)rank_in_cluster(), to, {}, 0, 0, barrier};
    load.gathered.resize(of.rows * BOX_PITCH);
    for (long long i = 0; i < of.rows && filter + i < of.k; ++i) {
        gather(&load.gathered[i * BOX_PITCH], of.filters + ((filter + i) * of.taps + tap) * of.c * 2, channel, of.c);
    }
    load_rows(load);
}
void fence_for_tma() { fiber().unfenced.clear(); }
void store_box(unsigned from, const char* map, int column, int row) {
    if (from % 1024) {
        fail("a box does not begin where its swizzle does");
    }
    Store store{from, {}, column, row};
    memcpy(&store.map, map, sizeof(Map));
    const unsigned end = from + store.map.box_rows * BOX_PITCH, threads = now.threads_x * now.threads_y;
    for (unsigned i = 0; i < threads; ++i) {
        for (const auto& range : fibers[fiber().block * threads + i].unfenced) {
            if (range.first < end && range.second > from) {
                fail("TMA stores what it may not see yet");
            }
        }
    }
    if (now.at_once) {
        run(store);
    } else {
        fiber().stores_begun.push_back(store);
    }
}
void store_bulk(void* to, unsigned from, unsigned bytes) {
    if (from % 16 || bytes % 16 || reinterpret_cast<std::uintptr_t>(to) % 16) {
        fail("a bulk store that is not aligned");
    }
    const Store store{from, {}, 0, 0, static_cast<unsigned char*>(to), bytes};
    if (now.at_once) {
        run(store);
    } else {
        fiber().stores_begun.push_back(store);
    }
}
void store_commit() {
    fiber().stores.push_back(std::move(fiber().stores_begun));
    fiber().stores_begun.clear();
}
void store_wait(unsigned pending) {
    auto& stores = fiber().stores;
    for (; stores.size() > pending; stores.pop_front()) {
        for (const Store& store : stores.front()) {
            run(store);
        }
    }
}
}  // namespace emulated
