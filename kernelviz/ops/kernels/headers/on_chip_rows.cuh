// Long rows kept on one SM: each thread has IN_REGISTERS vectors of its row in registers and IN_SHARED in shared memory, and issues the
// loads of all of them at once, so that up to 256 KiB an SM are in flight. The vectors in shared memory come by cp.async, each to the
// thread that issued it: no thread waits for another before the row is reduced. Rows that one SM cannot hold are shared by a cluster.
//
// With R a Row of rows.cuh of IN_REGISTERS + IN_SHARED vectors a thread, and LANES * IN_SHARED * 16 bytes of dynamic shared memory a tensor:
//     OnChipRow<…> on_chip(row, x, fill);
//     on_chip.consume(…);  row.reduce(…);
//     for (k …) { use(on_chip.vector(k)); row.store(…); }
#pragma once
#include "conversions.cuh"
#include "rows.cuh"

template <typename R, typename T, int LANES, int IN_REGISTERS, int IN_SHARED, bool ALIGNED> struct OnChipRow {
    static constexpr int WIDTH = Vec16<T>::WIDTH;
    static constexpr int GROUP = 4, GROUPS = (IN_SHARED + GROUP - 1) / GROUP;  // of vectors in shared memory that are waited for together

    const R& row;
    const T* x;
    T fill;
    Vec16<T>* shared_vectors;
    Vec16<T> register_vectors[IN_REGISTERS];

    // `tensor`: of several tensors whose rows are on the chip, the number of this one; they arrive in the order of construction.
    __device__ __forceinline__ OnChipRow(const R& row_, const T* x_, T fill_, int tensor = 0) : row(row_), x(x_), fill(fill_) {
        extern __shared__ __align__(16) unsigned char on_chip_memory[];
        shared_vectors = reinterpret_cast<Vec16<T>*>(on_chip_memory) + tensor * LANES * IN_SHARED + row.lane;
        const uint4* from = reinterpret_cast<const uint4*>(x + (row.start - row.head));
#pragma unroll
        for (int k = 0; k < IN_REGISTERS; ++k) {
            uint4 bits = filled();
            if (whole(k)) {
                bits = from[row.vector(k)];
            }
            *reinterpret_cast<uint4*>(&register_vectors[k]) = bits;
        }
#pragma unroll
        for (int k = 0; k < IN_SHARED; ++k) {
            if (whole(IN_REGISTERS + k)) {
                const unsigned to = (unsigned)__cvta_generic_to_shared(shared_vectors + k * LANES);
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from + row.vector(IN_REGISTERS + k)) : "memory");
            }
            if (k % GROUP == GROUP - 1 || k == IN_SHARED - 1) {
                asm volatile("cp.async.commit_group;" ::: "memory");
            }
        }
    }

    // Call `each(vectors)` with some vectors at a time, as they arrive, in the order in which their loads were issued; every vector has
    // arrived when it returns. Elements that are not the row's are `fill`.
    template <typename Each> __device__ __forceinline__ void consume(Each each) {
        if (!ALIGNED) {
#pragma unroll
            for (int k = 0; k < IN_REGISTERS; ++k) {
                patch_register(k);
            }
        }
        each(register_vectors);
        group<0>(each);
    }

    // The k-th vector, as often as needed after `consume`.
    __device__ __forceinline__ Vec16<T> vector(int k) const {
        return k < IN_REGISTERS ? register_vectors[k < IN_REGISTERS ? k : 0] : shared_vectors[(k - IN_REGISTERS) * LANES];
    }

private:
    template <int G, typename Each> __device__ __forceinline__ void group(Each& each) {
        constexpr int FIRST = G * GROUP, COUNT = IN_SHARED - FIRST < GROUP ? IN_SHARED - FIRST : GROUP;
        asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS - 1 - G) : "memory");
        Vec16<T> w[COUNT];
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            const int j = row.vector(IN_REGISTERS + FIRST + k);
            if (!ALIGNED && (j == 0 || j == row.vectors - 1)) {
                patch_shared(FIRST + k);
            }
            uint4 bits = filled();
            if (j < row.vectors) {
                bits = *reinterpret_cast<const uint4*>(shared_vectors + (FIRST + k) * LANES);
            }
            *reinterpret_cast<uint4*>(&w[k]) = bits;
        }
        each(w);
        if constexpr (FIRST + COUNT < IN_SHARED) {
            group<G + 1>(each);
        }
    }

    // Whether the k-th vector is one of this row and lies entirely inside the matrix.
    __device__ __forceinline__ bool whole(int k) const {
        const int j = row.vector(k);
        return j < row.vectors && (ALIGNED || row.start - row.head + (long long)(j + 1) * WIDTH <= row.total);
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

    // The element of the row's first or last vector: its own, or `fill` where it is a neighbour's.
    __device__ __forceinline__ unsigned patched(int k, int e, unsigned own) const {
        return !row.holds(k, e) ? bits_of(fill) : whole(k) ? own : bits_of(x[row.start + row.column(k, e)]);
    }
    // In pieces of 4 bytes: the compiler would give each 16-bit element a register of its own.
    __device__ __forceinline__ void patch_register(int k) {
        const int j = row.vector(k);
        if (j == 0 || j == row.vectors - 1) {
            uint4 bits = *reinterpret_cast<uint4*>(&register_vectors[k]);
            unsigned piece[4] = {bits.x, bits.y, bits.z, bits.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if constexpr (sizeof(T) == 4) {
                    piece[i] = patched(k, i, piece[i]);
                } else {
                    piece[i] = patched(k, 2 * i, piece[i] & 0xffffu) | patched(k, 2 * i + 1, piece[i] >> 16) << 16;
                }
            }
            *reinterpret_cast<uint4*>(&register_vectors[k]) = make_uint4(piece[0], piece[1], piece[2], piece[3]);
        }
    }
    // Not unrolled: it concerns two vectors of a row, and its code would be repeated in every group.
    __device__ __forceinline__ void patch_shared(int k) {
        T* elements = shared_vectors[k * LANES].e;
#pragma unroll 1
        for (int e = 0; e < WIDTH; ++e) {
            if (!row.holds(IN_REGISTERS + k, e)) {
                elements[e] = fill;
            } else if (!whole(IN_REGISTERS + k)) {
                elements[e] = x[row.start + row.column(IN_REGISTERS + k, e)];
            }
        }
    }
};
