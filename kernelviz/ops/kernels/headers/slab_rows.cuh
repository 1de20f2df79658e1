// Many short rows: whole rows that follow each other in memory are one piece, a slab. A block copies its slab into shared memory by 16-byte
// vectors, wherever in a vector its rows begin, and SLAB_LANES threads (a power of two, at most 32) process a row there. So memory
// is read as if there were no rows, and neither a row's length nor its alignment costs transactions.
//
// Compiled with -DSLAB_UNIT: bytes of an access to shared memory, the largest of 16, 8, 4 and 2 that divides a row; -DSLAB_THREADS:
// threads of a block. The number of rows a slab is an argument; the slab must begin on 16 bytes, which the bind function checks.
#pragma once
#include "conversions.cuh"

template <int BYTES> struct UnitBits;
template <> struct UnitBits<2> {
    using type = unsigned short;
};
template <> struct UnitBits<4> {
    using type = unsigned;
};
template <> struct UnitBits<8> {
    using type = uint2;
};
template <> struct UnitBits<16> {
    using type = uint4;
};

// Consecutive elements of a row that one access reads or writes.
template <typename T> struct Unit {
    static constexpr int WIDTH = SLAB_UNIT / sizeof(T);
    using Bits = typename UnitBits<SLAB_UNIT>::type;
    Bits bits;
    static __device__ __forceinline__ Unit of(const T* row, int index) { return {reinterpret_cast<const Bits*>(row)[index]}; }
    __device__ __forceinline__ void store(T* row, int index) const { reinterpret_cast<Bits*>(row)[index] = bits; }
    __device__ __forceinline__ void widen(float (&out)[WIDTH]) const {
        const T* elements = reinterpret_cast<const T*>(&bits);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            out[e] = to_float(elements[e]);
        }
    }
    static __device__ __forceinline__ Unit narrow(const float (&in)[WIDTH]) {
        Unit unit;
        T* elements = reinterpret_cast<T*>(&unit.bits);
#pragma unroll
        for (int e = 0; e < WIDTH; ++e) {
            elements[e] = from_float<T>(in[e]);
        }
        return unit;
    }
};

// The slab of this block: its first row, its number of rows (fewer in the last block), and where its elements begin.
struct Slab {
    long long first;
    int rows, n;
    __device__ __forceinline__ Slab(long long m, int n, int rows_a_slab) : first((long long)blockIdx.x * rows_a_slab), n(n) {
        const long long left = m - first;
        rows = left < rows_a_slab ? (int)left : rows_a_slab;
    }
    __device__ __forceinline__ long long start() const { return first * n; }
    __device__ __forceinline__ int elements() const { return rows * n; }
};

// The elements of a tensor of a slab in dynamic shared memory, so many bytes behind its beginning.
template <typename T> __device__ __forceinline__ T* slab_memory(int bytes = 0) {
    extern __shared__ __align__(16) unsigned char memory[];
    return reinterpret_cast<T*>(memory + bytes);
}

constexpr int SLAB_IN_FLIGHT = 4;  // 16-byte vectors of a thread
template <typename T> __device__ __forceinline__ void copy_elements(const T* from, T* to, int begin, int end) {
#pragma unroll 1
    for (int i = begin + threadIdx.x; i < end; i += SLAB_THREADS) {
        to[i] = from[i];
    }
}
// From memory into shared memory. The caller synchronises the block before it reads.
template <typename T> __device__ __forceinline__ void load_slab(const T* __restrict__ from, T* to, int elements) {
    constexpr int WIDTH = Vec16<T>::WIDTH;
    const int vectors = elements / WIDTH;
#pragma unroll 1
    for (int i = threadIdx.x; i < vectors; i += SLAB_IN_FLIGHT * SLAB_THREADS) {
        uint4 bits[SLAB_IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < SLAB_IN_FLIGHT; ++k) {
            if (i + k * SLAB_THREADS < vectors) {
                bits[k] = __ldcs(reinterpret_cast<const uint4*>(from) + i + k * SLAB_THREADS);
            }
        }
#pragma unroll
        for (int k = 0; k < SLAB_IN_FLIGHT; ++k) {
            if (i + k * SLAB_THREADS < vectors) {
                reinterpret_cast<uint4*>(to)[i + k * SLAB_THREADS] = bits[k];
            }
        }
    }
    copy_elements(from, to, vectors * WIDTH, elements);
}
// From shared memory, after the caller has synchronised the block.
template <typename T> __device__ __forceinline__ void store_slab(const T* from, T* __restrict__ to, int elements) {
    constexpr int WIDTH = Vec16<T>::WIDTH;
    const int vectors = elements / WIDTH;
#pragma unroll 2
    for (int i = threadIdx.x; i < vectors; i += SLAB_THREADS) {
        __stcs(reinterpret_cast<uint4*>(to) + i, reinterpret_cast<const uint4*>(from)[i]);
    }
    copy_elements(from, to, vectors * WIDTH, elements);
}

// Call `process(row, lane, inside)` for each row of the slab, by all threads of the block together, because the lanes of a row exchange
// values: where there is no further row, `inside` is false and the row is the last one, whose result must not be written.
template <typename Process> __device__ __forceinline__ void each_row(const Slab& slab, Process process) {
    for (int begin = 0; begin < slab.rows; begin += SLAB_THREADS / SLAB_LANES) {
        const int row = begin + threadIdx.x / SLAB_LANES;
        process(row < slab.rows ? row : slab.rows - 1, (int)(threadIdx.x % SLAB_LANES), row < slab.rows);
    }
}
// Call `use(index, values)` for each unit of a row that belongs to a lane.
template <typename T, typename Use> __device__ __forceinline__ void each_unit(const T* row, int n, int lane, Use use) {
#pragma unroll 2
    for (int i = lane; i < n / Unit<T>::WIDTH; i += SLAB_LANES) {
        float values[Unit<T>::WIDTH];
        Unit<T>::of(row, i).widen(values);
        use(i, values);
    }
}
