// Rows that are read once and kept nowhere: a thread asks for its next GROUP words of 16 bytes while it works on as many, so that
// memory always has something to do for it.
#pragma once
#include "vectors.cuh"

// A piece x[first .. first + n) of a row as whole words: `before` elements lie before the first of `count`, the rest behind them.
template <typename T> struct Pieces {
    static constexpr int WIDTH = Word<T>::WIDTH;
    const T* x;
    int n, before, count;

    template <bool ALIGNED> static __device__ __forceinline__ Pieces of(const T* x, int n) {
        const int away = ALIGNED ? 0 : (int)((16 - reinterpret_cast<unsigned long long>(x) % 16) % 16 / sizeof(T));
        const int before = away < n ? away : n;
        return {x, n, before, (n - before) / WIDTH};
    }
    __device__ __forceinline__ const uint4* words() const { return reinterpret_cast<const uint4*>(x + before); }
    __device__ __forceinline__ int behind() const { return before + count * WIDTH; }
};

// Those of words `at`, `at + LANES` … that are below `count`. Plain loads: evict-first ones read rows of 8 KiB 5 % slower on an H200.
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

// `take(words, number of the first one)` of words `lane`, `lane + LANES` … of `count`, ascending; `fill` stands for those beyond.
template <int LANES, int GROUP, typename Take>
__device__ __forceinline__ void stream(const uint4* from, int count, int lane, uint4 fill, Take& take) {
    constexpr int STEP = LANES * GROUP;
    uint4 one[GROUP], other[GROUP];
    load_group<LANES>(one, from, lane, count, fill);
    for (int first = 0;; first += 2 * STEP) {
        const int at = first + lane;
        if (first + STEP < count) {
            load_group<LANES>(other, from, at + STEP, count, fill);
        }
        take.template group<LANES>(one, at);
        if (first + STEP >= count) {
            return;
        }
        if (first + 2 * STEP < count) {
            load_group<LANES>(one, from, at + 2 * STEP, count, fill);
        }
        take.template group<LANES>(other, at + STEP);
        if (first + 2 * STEP >= count) {
            return;
        }
    }
}
