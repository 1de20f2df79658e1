// Long rows kept on one SM: each thread has NEAR words of its row in registers and FAR in shared memory, and asks for all of them
// at once, so that up to 256 KiB an SM are on their way. The words in shared memory come by cp.async, each to the thread that asked
// for it: nobody waits for anybody before the row is reduced. Rows that one SM cannot hold are shared by a cluster.
//
// With R a Row of rows.cuh of NEAR + FAR words a thread, and LANES * FAR * 16 bytes of dynamic shared memory a tensor:
//     Held<…> held(row, x, fill);
//     held.arriving(…);  row.reduce(…);
//     for (k …) { use(held.word(k)); row.store(…); }
#pragma once
#include "lanes.cuh"
#include "rows.cuh"

template <typename R, typename T, int LANES, int NEAR, int FAR, bool ALIGNED> struct Held {
    static constexpr int WIDTH = Word<T>::WIDTH;
    static constexpr int GROUP = 4, GROUPS = (FAR + GROUP - 1) / GROUP;  // of words in shared memory that are waited for together

    const R& row;
    const T* x;
    T fill;
    Word<T>* far_words;
    Word<T> near_words[NEAR];

    // `tensor`: of several that are held, the number of this one; they arrive in the order in which they were made.
    __device__ __forceinline__ Held(const R& row_, const T* x_, T fill_, int tensor = 0) : row(row_), x(x_), fill(fill_) {
        extern __shared__ __align__(16) unsigned char held_memory[];
        far_words = reinterpret_cast<Word<T>*>(held_memory) + tensor * LANES * FAR + row.lane;
        const uint4* from = reinterpret_cast<const uint4*>(x + (row.start - row.head));
#pragma unroll
        for (int k = 0; k < NEAR; ++k) {
            uint4 bits = filled();
            if (whole(k)) {
                bits = from[row.word(k)];
            }
            *reinterpret_cast<uint4*>(&near_words[k]) = bits;
        }
#pragma unroll
        for (int k = 0; k < FAR; ++k) {
            if (whole(NEAR + k)) {
                const unsigned to = (unsigned)__cvta_generic_to_shared(far_words + k * LANES);
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from + row.word(NEAR + k)) : "memory");
            }
            if (k % GROUP == GROUP - 1 || k == FAR - 1) {
                asm volatile("cp.async.commit_group;" ::: "memory");
            }
        }
    }

    // Once every word has arrived: `each(words)` of some words at a time, in the order in which they were asked for. What in them
    // is not the row's is `fill`.
    template <typename Each> __device__ __forceinline__ void arriving(Each each) {
        if (!ALIGNED) {
#pragma unroll
            for (int k = 0; k < NEAR; ++k) {
                patch_near(k);
            }
        }
        each(near_words);
        group<0>(each);
    }

    // The k-th word, as often as needed after `arriving`.
    __device__ __forceinline__ Word<T> word(int k) const {
        return k < NEAR ? near_words[k < NEAR ? k : 0] : far_words[(k - NEAR) * LANES];
    }

private:
    template <int G, typename Each> __device__ __forceinline__ void group(Each& each) {
        constexpr int FIRST = G * GROUP, COUNT = FAR - FIRST < GROUP ? FAR - FIRST : GROUP;
        asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS - 1 - G) : "memory");
        Word<T> w[COUNT];
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            const int j = row.word(NEAR + FIRST + k);
            if (!ALIGNED && (j == 0 || j == row.words - 1)) {
                patch_far(FIRST + k);
            }
            uint4 bits = filled();
            if (j < row.words) {
                bits = *reinterpret_cast<const uint4*>(far_words + (FIRST + k) * LANES);
            }
            *reinterpret_cast<uint4*>(&w[k]) = bits;
        }
        each(w);
        if constexpr (FIRST + COUNT < FAR) {
            group<G + 1>(each);
        }
    }

    // A word of this row that lies inside the matrix, every byte of it.
    __device__ __forceinline__ bool whole(int k) const {
        const int j = row.word(k);
        return j < row.words && (ALIGNED || row.start - row.head + (long long)(j + 1) * WIDTH <= row.total);
    }

    static __device__ __forceinline__ unsigned bits_of(T v) {
        if constexpr (sizeof(T) == 4) {
            return *reinterpret_cast<const unsigned*>(&v);
        } else {
            return *reinterpret_cast<const unsigned short*>(&v);
        }
    }
    __device__ __forceinline__ uint4 filled() const {
        const unsigned piece = sizeof(T) == 4 ? bits_of(fill) : bits_of(fill) * 0x10001u;
        return make_uint4(piece, piece, piece, piece);
    }

    // The element of the row's first or last word: its own, or `fill` where it is a neighbour's.
    __device__ __forceinline__ unsigned patched(int k, int e, unsigned own) const {
        return !row.holds(k, e) ? bits_of(fill) : whole(k) ? own : bits_of(x[row.start + row.column(k, e)]);
    }
    // In pieces of 4 bytes: of single halves the compiler would give each a register of its own.
    __device__ __forceinline__ void patch_near(int k) {
        const int j = row.word(k);
        if (j == 0 || j == row.words - 1) {
            uint4 bits = *reinterpret_cast<uint4*>(&near_words[k]);
            unsigned piece[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if constexpr (sizeof(T) == 4) {
                    piece[i] = patched(k, i, piece[i]);
                } else {
                    piece[i] = patched(k, 2 * i, piece[i] & 0xffffu) | patched(k, 2 * i + 1, piece[i] >> 16) << 16;
                }
            }
            *reinterpret_cast<uint4*>(&near_words[k]) = make_uint4(piece[0], piece[1], piece[2], piece[3]);
        }
    }
    // Not unrolled: two words of a row, whose code would stand in every group.
    __device__ __forceinline__ void patch_far(int k) {
        T* elements = far_words[k * LANES].e;
#pragma unroll 1
        for (int e = 0; e < WIDTH; ++e) {
            if (!row.holds(NEAR + k, e)) {
                elements[e] = fill;
            } else if (!whole(NEAR + k)) {
                elements[e] = x[row.start + row.column(NEAR + k, e)];
            }
        }
    }
};
