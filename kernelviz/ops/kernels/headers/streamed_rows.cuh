// Rows that are read once and not kept: a thread issues the loads of its next GROUP 16-byte vectors before it works on the current ones,
// so that loads are always in flight.
#pragma once
#include "vec16.cuh"

// A piece x[first .. first + n) of a row as whole vectors: `before` elements come before the first of `count` vectors, the rest after them.
template <typename T> struct RowPiece {
    static constexpr int WIDTH = Vec16<T>::WIDTH;
    const T* x;
    int n, before, count;

    template <bool ALIGNED> static __device__ __forceinline__ RowPiece of(const T* x, int n) {
        const int away = ALIGNED ? 0 : (int)((16 - reinterpret_cast<unsigned long long>(x) % 16) % 16 / sizeof(T));
        const int before = away < n ? away : n;
        return {x, n, before, (n - before) / WIDTH};
    }
    __device__ __forceinline__ const uint4* vectors() const { return reinterpret_cast<const uint4*>(x + before); }
    __device__ __forceinline__ int behind() const { return before + count * WIDTH; }
};

// Load those of vectors `at`, `at + LANES` … that are below `count`. Plain loads: evict-first ones read rows of 8 KiB 5 % slower on an H200.
template <int LANES, int GROUP>
__device__ __forceinline__ void load_group(uint4 (&w)[GROUP], const uint4* from, int at, int count, uint4 fill) {
#pragma unroll
    for (int k = 0; k < GROUP; ++k) {
        uint4 bits = fill;
        if (at + k * LANES < count) {
            bits = from[at + k * LANES];
        }
        w[k] = bits;
    }
}

// Call `consumer.group<LANES>(vectors, number of the first one)` for the vectors `lane`, `lane + LANES` … of `count`, in ascending order;
// `fill` replaces those beyond the last.
template <int LANES, int GROUP, typename Consumer>
__device__ __forceinline__ void stream(const uint4* from, int count, int lane, uint4 fill, Consumer& consumer) {
    constexpr int STEP = LANES * GROUP;
    uint4 one[GROUP], other[GROUP];
    load_group<LANES>(one, from, lane, count, fill);
    for (int first = 0;; first += 2 * STEP) {
        const int at = first + lane;
        if (first + STEP < count) {
            load_group<LANES>(other, from, at + STEP, count, fill);
        }
        consumer.template group<LANES>(one, at);
        if (first + STEP >= count) {
            return;
        }
        if (first + 2 * STEP < count) {
            load_group<LANES>(one, from, at + 2 * STEP, count, fill);
        }
        consumer.template group<LANES>(other, at + STEP);
        if (first + 2 * STEP >= count) {
            return;
        }
    }
}
