// Many short rows: whole rows that follow each other in memory are one piece, a slab. It is copied into shared memory without regard to
// where in a 16-byte vector its rows begin, and SLAB_LANES threads (a power of two, at most 32) process a row there. So memory
// is read as if there were no rows, and neither a row's length nor its alignment costs transactions. A thread reads its share of a row
// from shared memory once, into registers.
//
// Compiled with -DSLAB_UNIT: bytes of an access to shared memory, the largest of 16, 8, 4 and 2 that divides a row; -DSLAB_UNITS: units of
// a row that a thread has, the last of which each thread has if -DSLAB_FULL=1; -DSLAB_THREADS: threads of a block. The number of rows a
// slab is an argument; the tensors must begin on 16 bytes, which the bind function checks, and each slab but the last is whole
// 16-byte vectors. slabs.cuh says how slabs are copied. -DSLAB_ROWS: rows of a thread that has them in registers (slab_registers.cuh), or 0.
#pragma once
#include "access_bits.cuh"
#include "conversions.cuh"

// Consecutive elements of a row that one access reads or writes.
template <typename T> struct Unit {
    static constexpr int WIDTH = SLAB_UNIT / sizeof(T);
    using Bits = typename BitsOf<SLAB_UNIT>::Type;
    Bits bits;
    static __device__ __forceinline__ Unit of(const T* row, int index) { return {reinterpret_cast<const Bits*>(row)[index]}; }
    __device__ __forceinline__ void store(T* row, int index) const { reinterpret_cast<Bits*>(row)[index] = bits; }
    // Two 16-bit elements at a time, here and below, because that takes fewer instructions.
    __device__ __forceinline__ void widen(float (&out)[WIDTH]) const {
        if constexpr (sizeof(T) == 2 && WIDTH > 1) {
            const typename PackedPair<T>::type* pairs = reinterpret_cast<const typename PackedPair<T>::type*>(&bits);
#pragma unroll
            for (int e = 0; e < WIDTH; e += 2) {
                const float2 both = widened(pairs[e / 2]);
                out[e] = both.x;
                out[e + 1] = both.y;
            }
        } else {
            const T* elements = reinterpret_cast<const T*>(&bits);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                out[e] = to_float(elements[e]);
            }
        }
    }
    static __device__ __forceinline__ Unit narrow(const float (&in)[WIDTH]) {
        Unit unit;
        if constexpr (sizeof(T) == 2 && WIDTH > 1) {
            using Pair = PackedPair<T>;
            typename Pair::type* pairs = reinterpret_cast<typename Pair::type*>(&unit.bits);
#pragma unroll
            for (int e = 0; e < WIDTH; e += 2) {
                pairs[e / 2] = Pair::rounded(in[e], in[e + 1]);
            }
        } else {
            T* elements = reinterpret_cast<T*>(&unit.bits);
#pragma unroll
            for (int e = 0; e < WIDTH; ++e) {
                elements[e] = from_float<T>(in[e]);
            }
        }
        return unit;
    }
};
// The elements of a row that a thread has.
template <typename T> using LaneValues = float[SLAB_UNITS][Unit<T>::WIDTH];

// m rows of n elements; how many rows a slab has, and how many bytes of shared memory a tensor of it.
struct SlabSizes {
    long long m;
    int n, rows_a_slab, tensor_bytes;
};
// What is read and what is written of each slab. In shared memory the i-th output replaces the i-th input.
template <typename T, int INPUTS, int OUTPUTS> struct SlabTensors {
    const T* from[INPUTS];
    T* to[OUTPUTS > 0 ? OUTPUTS : 1];
};

// A slab: its first row, its number of rows (fewer in the last one), and where its elements begin.
struct Slab {
    long long first;
    int rows, n;
    __device__ __forceinline__ Slab(long long first, const SlabSizes& sizes) : first(first), n(sizes.n) {
        const long long left = sizes.m - first;
        rows = left < sizes.rows_a_slab ? (int)left : sizes.rows_a_slab;
    }
    __device__ __forceinline__ long long start() const { return first * n; }
    __device__ __forceinline__ int elements() const { return rows * n; }
    // Elements in whole 16-byte vectors. Only the last slab has others.
    template <typename T> __device__ __forceinline__ int in_vectors() const { return elements() / Vec16<T>::WIDTH * Vec16<T>::WIDTH; }
};

// The elements of a tensor of a slab in dynamic shared memory, so many bytes behind its beginning.
template <typename T> __device__ __forceinline__ T* slab_memory(int bytes = 0) {
    extern __shared__ __align__(16) unsigned char memory[];
    return reinterpret_cast<T*>(memory + bytes);
}

template <typename T> __device__ __forceinline__ void copy_elements(const T* from, T* to, int begin, int end) {
#pragma unroll 1
    for (int i = begin + threadIdx.x; i < end; i += SLAB_THREADS) {
        to[i] = from[i];
    }
}

// A row of a slab in shared memory, in each tensor, as a lane sees it, or a lane's part of it in registers. Where there is no further row,
// `inside` is false and the row is the last one or zeros, whose result must not be written.
template <typename T, int INPUTS> struct SlabRow {
    T* of[INPUTS];
    long long number;
    int lane;
    int of_thread;  // which of SLAB_ROWS rows
    bool inside;
    // The lane's k-th unit of the i-th tensor, which has this number in the row.
    __device__ __forceinline__ Unit<T> read(int i, int k, int unit) const { return Unit<T>::of(of[i], SLAB_ROWS > 0 ? k : unit); }
    __device__ __forceinline__ void write(int i, int k, int unit, const Unit<T>& value) const { value.store(of[i], SLAB_ROWS > 0 ? k : unit); }
};
// Call `process(row)` for each row of a slab in shared memory, by all threads of a warp together, because the lanes of a row exchange values.
template <typename T, int INPUTS, typename Process>
__device__ __forceinline__ void each_row(const Slab& slab, T* slab_of_first, int tensor_bytes, Process process) {
    const int first_of_warp = threadIdx.x / 32 * 32 / SLAB_LANES;
#pragma unroll 1
    for (int begin = 0; begin + first_of_warp < slab.rows; begin += SLAB_THREADS / SLAB_LANES) {
        const int wanted = begin + threadIdx.x / SLAB_LANES;
        SlabRow<T, INPUTS> row;
        row.inside = wanted < slab.rows;
        row.lane = threadIdx.x % SLAB_LANES;
        const int index = row.inside ? wanted : slab.rows - 1;
        row.number = slab.first + index;
#pragma unroll
        for (int i = 0; i < INPUTS; ++i) {
            row.of[i] = slab_of_first + i * (tensor_bytes / (int)sizeof(T)) + index * slab.n;
        }
        process(row);
    }
}
// Call `use(k, unit)` for each unit of a row that belongs to a lane: its k-th one has this number in the row.
template <typename T, typename Use> __device__ __forceinline__ void each_unit(int n, int lane, Use use) {
#pragma unroll
    for (int k = 0; k < SLAB_UNITS; ++k) {
        const int unit = lane + k * SLAB_LANES;
        if (SLAB_FULL || k < SLAB_UNITS - 1 || unit < n / Unit<T>::WIDTH) {
            use(k, unit);
        }
    }
}
