// Very short rows in registers, without shared memory: a thread loads its 16-byte vectors of SLAB_ROWS rows at once and then processes one row
// after the other. Rows that begin within vectors (SLAB_UNIT < 16) are consecutive, together whole vectors, and belong to one thread.
// Rows of whole vectors are shared by SLAB_LANES threads, so that a warp reads consecutive vectors.
#pragma once
#include "loads_first.cuh"
#include "slab_rows.cuh"

constexpr bool CONSECUTIVE_ROWS = SLAB_UNIT < 16;
static_assert(SLAB_ROWS == 0 || !CONSECUTIVE_ROWS || SLAB_LANES == 1);

// The rows of a thread: the first one, and how far apart they are.
struct RowsOfThread {
    static constexpr int APART = CONSECUTIVE_ROWS ? 1 : SLAB_THREADS / SLAB_LANES;
    long long first, left;  // rows from the first one to the last of the matrix
    __device__ __forceinline__ explicit RowsOfThread(long long m)
        : first(
              CONSECUTIVE_ROWS ? ((long long)blockIdx.x * SLAB_THREADS + threadIdx.x) * SLAB_ROWS
                               : (long long)blockIdx.x * (APART * SLAB_ROWS) + threadIdx.x / SLAB_LANES),
          left(m - first) {}
    __device__ __forceinline__ bool is_inside(int row) const { return row * APART < left; }
    __device__ __forceinline__ bool all_inside() const { return (SLAB_ROWS - 1) * APART < left; }
};

// Results of a thread's rows, one element each. Those of consecutive rows are written together.
template <typename T> struct RowResults {
    static constexpr int BYTES = SLAB_ROWS * (int)sizeof(T), CHUNK = BYTES == 0 || BYTES > 16 ? 16 : BYTES;
    alignas(16) T of[SLAB_ROWS > 0 ? SLAB_ROWS : 1];
    __device__ __forceinline__ void store(T* out, long long m) const {
        const RowsOfThread rows(m);
        if (rows.all_inside()) {
            using Bits = typename BitsOf<CHUNK>::Type;
#pragma unroll
            for (int c = 0; c < BYTES / CHUNK; ++c) {
                reinterpret_cast<Bits*>(out + rows.first)[c] = reinterpret_cast<const Bits*>(of)[c];
            }
            return;
        }
#pragma unroll
        for (int r = 0; r < SLAB_ROWS; ++r) {
            if (rows.is_inside(r)) {
                out[rows.first + r] = of[r];
            }
        }
    }
};

// Call `use(i, vector of the thread, index of the vector in its tensor)` for each vector of a thread's whole rows in each tensor.
template <typename T, int TENSORS, typename Use>
__device__ __forceinline__ void each_vector(const RowsOfThread& rows, int n, int lane, Use use) {
#pragma unroll
    for (int i = 0; i < TENSORS; ++i) {
        if constexpr (CONSECUTIVE_ROWS) {
            constexpr int VECTORS = SLAB_ROWS * SLAB_UNITS * SLAB_UNIT / 16;
            const long long begin = rows.first / (SLAB_ROWS > 0 ? SLAB_ROWS : 1) * VECTORS;
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
                use(i, v, begin + v);
            }
        } else {
            const int of_row = SLAB_FULL ? SLAB_UNITS * SLAB_LANES : n / Unit<T>::WIDTH;
            const long long begin = rows.first * of_row + lane;
#pragma unroll
            for (int r = 0; r < SLAB_ROWS; ++r) {
#pragma unroll
                for (int k = 0; k < SLAB_UNITS; ++k) {
                    if (rows.is_inside(r) && (SLAB_FULL || lane + k * SLAB_LANES < of_row)) {
                        use(i, r * SLAB_UNITS + k, begin + r * RowsOfThread::APART * of_row + k * SLAB_LANES);
                    }
                }
            }
        }
    }
}

template <typename T, int INPUTS, int OUTPUTS, typename Process>
__device__ __forceinline__ void process_in_registers(const SlabTensors<T, INPUTS, OUTPUTS>& tensors, const SlabSizes& sizes, Process process) {
    constexpr int OF_ROW = SLAB_UNITS * Unit<T>::WIDTH, ELEMENTS = SLAB_ROWS * OF_ROW, VECTORS = ELEMENTS / Vec16<T>::WIDTH;
    const RowsOfThread rows(sizes.m);
    if (CONSECUTIVE_ROWS && rows.left <= 0) {
        return;
    }
    const int lane = threadIdx.x % SLAB_LANES;
    uint4 bits[INPUTS][VECTORS];
    auto load = [&](int i, int v, long long at) { bits[i][v] = __ldcs(reinterpret_cast<const uint4*>(tensors.from[i]) + at); };
    auto store = [&](int i, int v, long long at) { __stcs(reinterpret_cast<uint4*>(tensors.to[i]) + at, bits[i][v]); };
    const bool by_vectors = !CONSECUTIVE_ROWS || rows.all_inside();
    if (by_vectors) {
        if (!CONSECUTIVE_ROWS) {
#pragma unroll
            for (int i = 0; i < INPUTS; ++i) {
#pragma unroll
                for (int v = 0; v < VECTORS; ++v) {
                    bits[i][v] = make_uint4(0, 0, 0, 0);
                }
            }
        }
        each_vector<T, INPUTS>(rows, sizes.n, lane, load);
    } else {
#pragma unroll
        for (int i = 0; i < INPUTS; ++i) {
#pragma unroll
            for (int e = 0; e < ELEMENTS; ++e) {
                const bool inside = rows.is_inside(e / OF_ROW);
                reinterpret_cast<T*>(bits[i])[e] = inside ? tensors.from[i][rows.first * OF_ROW + e] : from_float<T>(0.0f);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < INPUTS; ++i) {
        loads_first(bits[i]);
    }
#pragma unroll
    for (int r = 0; r < SLAB_ROWS; ++r) {
        SlabRow<T, INPUTS> row;
        row.inside = CONSECUTIVE_ROWS || rows.is_inside(r);
        row.lane = lane;
        row.number = rows.first + r * RowsOfThread::APART;
        row.of_thread = r;
#pragma unroll
        for (int i = 0; i < INPUTS; ++i) {
            row.of[i] = reinterpret_cast<T*>(bits[i]) + r * OF_ROW;
        }
        process(row);
    }
    if (by_vectors) {
        each_vector<T, OUTPUTS>(rows, sizes.n, lane, store);
    } else {
#pragma unroll
        for (int i = 0; i < OUTPUTS; ++i) {
#pragma unroll
            for (int e = 0; e < ELEMENTS; ++e) {
                if (rows.is_inside(e / OF_ROW)) {
                    tensors.to[i][rows.first * OF_ROW + e] = reinterpret_cast<const T*>(bits[i])[e];
                }
            }
        }
    }
}
