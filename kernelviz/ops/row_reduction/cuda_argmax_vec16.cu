// `argmax` by 16-byte vectors: only the largest element of each vector is compared with the largest so far, whose vector is stored. That
// takes 14 instructions a vector of bf16 and 8 for its load (sm_90). Element by element it takes about 50, half of what an H200 issues
// while it reads one vector (counted, not profiled).
// The index within the vector is determined once a row, by the thread that holds the vector.
//
// ROW_LANES threads share a row or a part of one, each with up to 2 * ROW_GROUP vectors in flight; a block has ROW_ROWS rows (more than
// one only with 32 lanes), an SM ROW_RESIDENT blocks. ROW_ALIGNED=true: rows are whole vectors. ELEMENT is float, __half or __nv_bfloat16.
#include "conversions.cuh"
#include "streamed_rows.cuh"

using P = RowPiece<ELEMENT>;
constexpr int WIDTH = P::WIDTH, NO_INDEX = 0x7fffffff;
constexpr unsigned ALL_LANES = 0xffffffffu;

template <typename T> constexpr unsigned MINUS_INFINITIES = 0xff800000u;
template <> constexpr unsigned MINUS_INFINITIES<__half> = 0xfc00fc00u;
template <> constexpr unsigned MINUS_INFINITIES<__nv_bfloat16> = 0xff80ff80u;

__device__ __forceinline__ uint4 minus_infinities() {
    constexpr unsigned piece = MINUS_INFINITIES<ELEMENT>;
    return make_uint4(piece, piece, piece, piece);
}

// The larger number; NaN is above all numbers.
__device__ __forceinline__ float larger(float a, float b) {
    float out;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
    return out;
}
template <typename T> __device__ __forceinline__ float largest(const uint4& bits) {
    if constexpr (sizeof(T) == 4) {
        return larger(
            larger(__uint_as_float(bits.x), __uint_as_float(bits.y)), larger(__uint_as_float(bits.z), __uint_as_float(bits.w)));
    } else {
        const typename PackedPair<T>::type* pairs = reinterpret_cast<const typename PackedPair<T>::type*>(&bits);
        const float2 both = widened(__hmax2_nan(__hmax2_nan(pairs[0], pairs[1]), __hmax2_nan(pairs[2], pairs[3])));
        return larger(both.x, both.y);
    }
}

// The largest element of a thread so far, and the first vector that holds it.
struct Best {
    float value = -INFINITE;
    int at = NO_INDEX;
    uint4 vector = minus_infinities();

    // Vectors come in ascending order, so an element that is not larger does not replace.
    __device__ __forceinline__ void update(const uint4& bits, float v, int i) {
        if (!(v <= value) && value == value) {
            value = v;
            at = i;
            vector = bits;
        }
    }
    template <int APART, int COUNT> __device__ __forceinline__ void group(const uint4 (&w)[COUNT], int first) {
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            update(w[k], largest<ELEMENT>(w[k]), first + k * APART);
        }
    }
    // The index of the largest element within its vector; the first of equal elements.
    __device__ __forceinline__ int element() const {
        const ELEMENT* e = reinterpret_cast<const ELEMENT*>(&vector);
        int index = 0;
#pragma unroll
        for (int k = WIDTH - 1; k >= 0; --k) {
            const float v = to_float(e[k]);
            if (v == value || v != v) {
                index = k;
            }
        }
        return index;
    }
};

// A vector whose first element is v and whose other elements are -inf.
__device__ __forceinline__ uint4 single(ELEMENT v) {
    uint4 bits = minus_infinities();
    reinterpret_cast<ELEMENT*>(&bits)[0] = v;
    return bits;
}

// The largest element of thread `lane` of ROW_LANES in x[0 .. n); `at` is the index of the first element of its vector.
__device__ __forceinline__ Best largest_of_part(const ELEMENT* x, int n, int lane) {
    const P piece = P::of<ROW_ALIGNED>(x, n);
    const int tail = piece.behind() + lane;
    Best best;
    ELEMENT first = x[0], last = x[0];
    if (!ROW_ALIGNED) {
        first = x[lane < piece.before ? lane : 0];
        last = x[tail < n ? tail : 0];
    }
    stream<ROW_LANES, ROW_GROUP>(piece.vectors(), piece.count, lane, minus_infinities(), best);
    if (best.at != NO_INDEX) {
        best.at = piece.before + best.at * WIDTH;
    }
    if (!ROW_ALIGNED) {
        if (tail < n) {
            best.update(single(last), to_float(last), tail);
        }
        // Its index is below all others of the thread.
        const float v = to_float(first);
        if (lane < piece.before && !(v < best.value) && (v != v || best.value == best.value)) {
            best = {v, lane, single(first)};
        }
    }
    return best;
}

// Integers in the order of the floats: NaN above all, zeros of either sign equal.
__device__ __forceinline__ unsigned ordered(float v) {
    const unsigned bits = __float_as_uint(v + 0.0f);
    return v != v ? 0xffffffffu : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

struct KeyAndIndex {
    unsigned key;
    int at;
};

// The largest key and the lowest index with that key, in every lane.
__device__ __forceinline__ KeyAndIndex over_warp(KeyAndIndex mine) {
    const unsigned key = __reduce_max_sync(ALL_LANES, mine.key);
    return {key, __reduce_min_sync(ALL_LANES, mine.key == key ? mine.at : NO_INDEX)};
}

// The same over the threads of a row, in each of them.
__device__ __forceinline__ KeyAndIndex over_row(KeyAndIndex mine) {
    mine = over_warp(mine);
    if constexpr (ROW_LANES > 32) {
        __shared__ KeyAndIndex of_warp[ROW_LANES / 32];
        const int lane = threadIdx.x % 32;
        if (lane == 0) {
            of_warp[threadIdx.x / 32] = mine;
        }
        __syncthreads();
        mine = over_warp(lane < ROW_LANES / 32 ? of_warp[lane] : KeyAndIndex{0u, NO_INDEX});
    }
    return mine;
}

// 1. A warp or a block a row.
extern "C" __global__ void __launch_bounds__(ROW_LANES * ROW_ROWS, ROW_RESIDENT) argmax_vec16(
    const ELEMENT* __restrict__ x, long long* __restrict__ out, int m, int n) {
    const long long row = (long long)blockIdx.x * ROW_ROWS + (ROW_ROWS > 1 ? threadIdx.x / 32 : 0);
    const int lane = ROW_ROWS > 1 ? threadIdx.x % 32 : threadIdx.x;
    if (row >= m) {
        return;
    }
    const Best best = largest_of_part(x + row * n, n, lane);
    const KeyAndIndex row_best = over_row({ordered(best.value), best.at});
    // If nothing is above -inf, any index is right.
    if (row_best.at == NO_INDEX ? lane == 0 : row_best.at == best.at) {
        out[row] = row_best.at == NO_INDEX ? 0 : best.at + best.element();
    }
}

// 2. `parts` blocks a row, each with `part` of its elements. The last block of a row merges the results of all. `tickets` count the
// finished blocks of each row; the last block resets its row's to 0.
extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_RESIDENT) argmax_vec16_split(
    const ELEMENT* __restrict__ x, unsigned* __restrict__ keys, int* __restrict__ indices, unsigned* __restrict__ tickets,
    long long* __restrict__ out, int n, int parts, int part) {
    const long long row = blockIdx.x / parts;
    const int first = (int)(blockIdx.x % parts) * part;
    const Best best = largest_of_part(x + row * n + first, n - first < part ? n - first : part, threadIdx.x);
    KeyAndIndex row_best = over_row({ordered(best.value), best.at});
    // Only the warp of the thread that holds the vector continues.
    const bool holds = row_best.at == NO_INDEX ? threadIdx.x == 0 : row_best.at == best.at;
    const unsigned holders = __ballot_sync(ALL_LANES, holds);
    if (holders == 0) {
        return;
    }
    unsigned before = 0;
    if (holds) {
        keys[blockIdx.x] = row_best.key;
        indices[blockIdx.x] = row_best.at == NO_INDEX ? NO_INDEX : first + best.at + best.element();
        __threadfence();
        before = atomicInc(tickets + row, parts - 1);
    }
    if (__shfl_sync(ALL_LANES, before, __ffs(holders) - 1) != parts - 1) {
        return;
    }
    __threadfence();
    row_best = {0u, NO_INDEX};
    for (int k = threadIdx.x % 32; k < parts; k += 32) {
        const KeyAndIndex other = {__ldcg(keys + row * parts + k), __ldcg(indices + row * parts + k)};
        // Parts come in ascending order, so a key that is not larger does not replace.
        row_best = other.key > row_best.key ? other : row_best;
    }
    row_best = over_warp(row_best);
    if (threadIdx.x % 32 == 0) {
        out[row] = row_best.at == NO_INDEX ? 0 : row_best.at;
    }
}
