// kernelviz/ops/kernels/headers/tma.cuh for the processor: the same functions. A tensor map is a `Map` of runtime/fibers.h.
#pragma once

inline void barrier_init(unsigned barrier, int arrivals) { emulated::barrier_init(barrier, arrivals); }
inline void barrier_init_done() {}
inline void barrier_wait(unsigned barrier, int parity) { emulated::barrier_wait(barrier, parity); }
inline void barrier_expect(unsigned barrier, int bytes) { emulated::barrier_expect(barrier, bytes); }
inline void barrier_arrive(unsigned barrier) { emulated::barrier_arrive(barrier, emulated::rank_in_cluster()); }
inline void barrier_arrive_at(unsigned barrier, int block) { emulated::barrier_arrive(barrier, block); }

inline int rank_in_cluster() { return emulated::rank_in_cluster(); }
inline void cluster_barrier() { emulated::cluster_barrier(); }

// Here a launch hands over where they are.
template <int N> struct Maps {
    const char* first;
    explicit Maps(long long address) : first((const char*)address) {}
    operator const char*() const { return first; }
};
inline void load_box(unsigned to, const char* map, int column, int row, unsigned barrier) {
    emulated::load_box(1 << emulated::rank_in_cluster(), to, map, column, row, barrier);
}
inline void load_box_for(unsigned short blocks, unsigned to, const char* map, int column, int row, unsigned barrier) {
    emulated::load_box(blocks, to, map, column, row, barrier);
}
inline void fence_for_tma() { emulated::fence_for_tma(); }
inline void store_box(unsigned from, const char* map, int column, int row) { emulated::store_box(from, map, column, row); }
inline void store_commit() { emulated::store_commit(); }
template <int Groups> void store_wait_read() { emulated::store_wait(Groups); }
inline void store_wait() { emulated::store_wait(0); }
