// CUDA C++ kernels of `argmax` of short rows, for one length only. ELEMENT is float, __half or __nv_bfloat16. As in known_length.cu, nothing is
// computed about ends or loops, and all loads of a thread are in flight at once.
#include "adjacent_sum.cuh"
#include "vec16.cuh"

// LENGTH elements a row, LANES threads that share it, a power of two. Rows start on multiples of UNIT elements, which is 1 for more than one thread.
#ifndef LENGTH
#define LENGTH 1
#define LANES 1
#define UNIT 1
#endif
// Rows of a thread of the kernel for many rows, 1 or 2; 0 for the other kernels.
#ifndef SET_ROWS
#define SET_ROWS 0
#endif
constexpr int THREADS = 128;
constexpr int EACH = (LENGTH + LANES - 1) / LANES;

// The first of the largest of a thread's elements, NaN above all, in value[0] and at[0]. Neighbours are compared first, so that few comparisons
// wait for each other.
template <int COUNT> __device__ __forceinline__ void first_of_largest(float (&value)[COUNT], int (&at)[COUNT]) {
#pragma unroll
    for (int apart = 1; apart < COUNT; apart *= 2) {
#pragma unroll
        for (int k = 0; k + apart < COUNT; k += 2 * apart) {
            const bool replaced = !(value[k + apart] <= value[k]) && value[k] == value[k];
            value[k] = replaced ? value[k + apart] : value[k];
            at[k] = replaced ? at[k + apart] : at[k];
        }
    }
}

// Integers in the order of the floats: NaN above all, zeros of either sign equal.
__device__ __forceinline__ unsigned ordered(float v) {
    const unsigned bits = __float_as_uint(v + 0.0f);
    return v != v ? 0xffffffffu : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

extern "C" __global__ void __launch_bounds__(THREADS) argmax_known_length(
    const ELEMENT* __restrict__ x, long long* __restrict__ out, int last) {
    // No branch, so that nothing waits for one: threads behind the last row process it again, lanes behind its end its last element, and all
    // threads of a row store its index.
    const unsigned thread = blockIdx.x * THREADS + threadIdx.x;
    const int row = min((int)(thread / LANES), last), lane = thread % LANES, first = row * LENGTH;
    const ELEMENT* from = x + (first + lane);
    float value[EACH];
    int at[EACH];
    ELEMENT v[EACH];
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        at[k] = (k + 1) * LANES <= LENGTH ? k * LANES + lane : min(k * LANES + lane, LENGTH - 1);
        v[k] = (k + 1) * LANES <= LENGTH ? from[k * LANES] : x[first + at[k]];
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        value[k] = to_float(v[k]);
    }
    first_of_largest(value, at);
    unsigned key = ordered(value[0]);
    int index = at[0];
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) {
        const unsigned other = __shfl_xor_sync(0xffffffffu, key, apart);
        const int other_index = __shfl_xor_sync(0xffffffffu, index, apart);
        const bool replaced = other > key || (other == key && other_index < index);
        key = replaced ? other : key;
        index = replaced ? other_index : index;
    }
    out[row] = index;
}

// Elements as fp32 numbers, two of 16 bits with a shift and a mask or with one conversion.
template <typename T, int COUNT> __device__ __forceinline__ void widen_part(const Adjacent<T, COUNT>& part, float* value) {
    if constexpr (sizeof(T) == 2 && COUNT > 1) {
#pragma unroll
        for (int k = 0; k < COUNT; k += 2) {
            const float2 both = widened(reinterpret_cast<const typename PackedPair<T>::type*>(part.of)[k / 2]);
            value[k] = both.x;
            value[k + 1] = both.y;
        }
    } else {
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            value[k] = to_float(part.of[k]);
        }
    }
}

// Few rows of few elements: a thread has a row, and the block as many threads as there are rows.
constexpr int OF_ROW = LANES == 1 && SET_ROWS == 0 ? LENGTH : UNIT;
struct RowOfThread {
    Adjacent<ELEMENT, UNIT> part[OF_ROW / UNIT];
};
static_assert(OF_ROW % UNIT == 0);

extern "C" __global__ void __launch_bounds__(32) argmax_known_serial(const ELEMENT* __restrict__ x, long long* __restrict__ out) {
    const RowOfThread* from = reinterpret_cast<const RowOfThread*>(x) + threadIdx.x;
    RowOfThread row;
#pragma unroll
    for (int p = 0; p < OF_ROW / UNIT; ++p) {
        row.part[p] = load_whole(from->part + p);
    }
    float value[OF_ROW];
    int at[OF_ROW];
#pragma unroll
    for (int k = 0; k < OF_ROW; ++k) {
        at[k] = k;
    }
#pragma unroll
    for (int p = 0; p < OF_ROW / UNIT; ++p) {
        widen_part(row.part[p], value + p * UNIT);
    }
    first_of_largest(value, at);
    out[threadIdx.x] = at[0];
}

// Many rows of few elements, which together with their indices are memory traffic: a thread has one row, or two so that it stores 16 bytes, and a
// warp reads and writes without gaps. x starts on 16 bytes, and these rows are a multiple of UNIT elements.
constexpr int ROWS = SET_ROWS > 0 ? SET_ROWS : 1, OF_SET = SET_ROWS > 0 ? ROWS * LENGTH / UNIT : 1;
struct RowsOfThread {
    Adjacent<ELEMENT, UNIT> part[OF_SET];
};

extern "C" __global__ void __launch_bounds__(THREADS) argmax_known_many(
    const ELEMENT* __restrict__ x, long long* __restrict__ out, long long m) {
    const long long set = (long long)blockIdx.x * THREADS + threadIdx.x, first = set * ROWS;
    float value[ROWS][LENGTH];
    const bool whole = first + ROWS <= m;
    if (whole) {
        const RowsOfThread* from = reinterpret_cast<const RowsOfThread*>(x) + set;
        RowsOfThread rows;
#pragma unroll
        for (int p = 0; p < OF_SET; ++p) {
            rows.part[p] = load_whole(from->part + p);
        }
#pragma unroll
        for (int p = 0; p < OF_SET; ++p) {
            widen_part(rows.part[p], &value[0][0] + p * UNIT);
        }
    } else if (first < m) {  // the last of an odd number of rows
#pragma unroll
        for (int k = 0; k < ROWS * LENGTH; ++k) {
            value[k / LENGTH][k % LENGTH] = k < LENGTH ? to_float(x[first * LENGTH + k]) : 0.0f;
        }
    } else {
        return;
    }
    struct alignas(8 * ROWS) {
        long long of[ROWS];
    } indices;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        int at[LENGTH];
#pragma unroll
        for (int k = 0; k < LENGTH; ++k) {
            at[k] = k;
        }
        first_of_largest(value[r], at);
        indices.of[r] = at[0];
    }
    if (ROWS == 2 && whole) {
        *reinterpret_cast<uint4*>(out + first) = reinterpret_cast<const uint4&>(indices);
    } else {
        out[first] = indices.of[0];
    }
}
