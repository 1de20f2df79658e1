// kernelviz/ops/kernels/headers/warpgroups.cuh for the processor: the same functions.
#pragma once

inline unsigned aligned_shared_memory() { return (emulated::dynamic_shared_memory() + 1023) / 1024 * 1024; }
inline unsigned dynamic_shared_memory() { return emulated::dynamic_shared_memory(); }
template <int Registers> void release_registers() {}
template <int Registers> void take_registers() {}
inline void warpgroup_barrier(int warpgroup) { emulated::barrier_of_threads(warpgroup + 1, 128); }
inline void store_matrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    const unsigned values[4] = {a, b, c, d};
    emulated::stmatrix(to, values);
}
inline void store_transposed(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    const unsigned values[4] = {a, b, c, d};
    emulated::stmatrix(to, values, true);
}
inline void load_two(unsigned& first, unsigned& second, unsigned from) {
    unsigned both[2];
    emulated::load(both, from, 8);
    first = both[0];
    second = both[1];
}
