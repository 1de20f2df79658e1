// `argmax` by words: of each 16 bytes only the largest element is compared with the best so far, and the word that it lies in is
// kept. 14 instructions a word of bf16 and 8 for its load (sm_90); element by element about 50, half of what an H200 issues in the time
// that it reads one (counted, not profiled).
// Which element of the word it was is asked once a row, by the thread that holds the word.
//
// -DROW_LANES threads share a row or a part of one, each with up to 2 * -DROW_GROUP words on their way; -DROW_ROWS rows lie in a block (more than
// one only with 32 lanes), -DROW_RESIDENT blocks on an SM. -DROW_ALIGNED=true: rows are whole words. ELEMENT is float, __half or __nv_bfloat16.
#include "lanes.cuh"
#include "streamed.cuh"

using P = Pieces<ELEMENT>;
constexpr int WIDTH = P::WIDTH, NOWHERE = 0x7fffffff;
constexpr unsigned EVERY_LANE = 0xffffffffu;

template <typename T> constexpr unsigned MINUS_INFINITIES = 0xff800000u;
template <> constexpr unsigned MINUS_INFINITIES<__half> = 0xfc00fc00u;
template <> constexpr unsigned MINUS_INFINITIES<__nv_bfloat16> = 0xff80ff80u;

__device__ __forceinline__ uint4 nothing() {
    constexpr unsigned piece = MINUS_INFINITIES<ELEMENT>;
    return make_uint4(piece, piece, piece, piece);
}

// NaN above all.
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
        const typename Two<T>::type* twos = reinterpret_cast<const typename Two<T>::type*>(&bits);
        const float2 both = widened(__hmax2_nan(__hmax2_nan(twos[0], twos[1]), __hmax2_nan(twos[2], twos[3])));
        return larger(both.x, both.y);
    }
}

// The largest element that a thread has met, and the first word that holds it.
struct Best {
    float value = -INFINITE;
    int at = NOWHERE;
    uint4 word = nothing();

    // Words come in ascending order, so what is not larger does not replace.
    __device__ __forceinline__ void take(const uint4& bits, float v, int i) {
        if (!(v <= value) && value == value) {
            value = v;
            at = i;
            word = bits;
        }
    }
    template <int APART, int COUNT> __device__ __forceinline__ void group(const uint4 (&w)[COUNT], int first) {
#pragma unroll
        for (int k = 0; k < COUNT; ++k) {
            take(w[k], largest<ELEMENT>(w[k]), first + k * APART);
        }
    }
    // The element of the word that it is; of equal ones the first.
    __device__ __forceinline__ int element() const {
        const ELEMENT* e = reinterpret_cast<const ELEMENT*>(&word);
        int found = 0;
#pragma unroll
        for (int k = WIDTH - 1; k >= 0; --k) {
            const float v = to_float(e[k]);
            if (v == value || v != v) {
                found = k;
            }
        }
        return found;
    }
};

// A single element as a word that has it in front.
__device__ __forceinline__ uint4 alone(ELEMENT v) {
    uint4 bits = nothing();
    reinterpret_cast<ELEMENT*>(&bits)[0] = v;
    return bits;
}

// What `lane` of ROW_LANES threads finds in x[0 .. n); `at` is the place of its word's first element.
__device__ __forceinline__ Best walk(const ELEMENT* x, int n, int lane) {
    const P piece = P::of<ROW_ALIGNED>(x, n);
    const int tail = piece.behind() + lane;
    Best best;
    ELEMENT first = x[0], last = x[0];
    if (!ROW_ALIGNED) {
        first = x[lane < piece.before ? lane : 0];
        last = x[tail < n ? tail : 0];
    }
    stream<ROW_LANES, ROW_GROUP>(piece.words(), piece.count, lane, nothing(), best);
    if (best.at != NOWHERE) {
        best.at = piece.before + best.at * WIDTH;
    }
    if (!ROW_ALIGNED) {
        if (tail < n) {
            best.take(alone(last), to_float(last), tail);
        }
        // It stands before all others of the thread.
        const float v = to_float(first);
        if (lane < piece.before && !(v < best.value) && (v != v || best.value == best.value)) {
            best = {v, lane, alone(first)};
        }
    }
    return best;
}

// Whole numbers in the order of the floats, NaN above all, zeros of either sign equal.
__device__ __forceinline__ unsigned ordered(float v) {
    const unsigned bits = __float_as_uint(v + 0.0f);
    return v != v ? 0xffffffffu : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

struct Place {
    unsigned key;
    int at;
};

// The largest key, and the lowest place of those that have it, in every lane.
__device__ __forceinline__ Place over_warp(Place mine) {
    const unsigned key = __reduce_max_sync(EVERY_LANE, mine.key);
    return {key, __reduce_min_sync(EVERY_LANE, mine.key == key ? mine.at : NOWHERE)};
}

// Over the threads of a row, in each of them.
__device__ __forceinline__ Place over_row(Place mine) {
    mine = over_warp(mine);
    if constexpr (ROW_LANES > 32) {
        __shared__ Place of_warp[ROW_LANES / 32];
        const int lane = threadIdx.x % 32;
        if (lane == 0) {
            of_warp[threadIdx.x / 32] = mine;
        }
        __syncthreads();
        mine = over_warp(lane < ROW_LANES / 32 ? of_warp[lane] : Place{0u, NOWHERE});
    }
    return mine;
}

// 1. A warp or a block a row.
extern "C" __global__ void __launch_bounds__(ROW_LANES * ROW_ROWS, ROW_RESIDENT) argmax_words(
    const ELEMENT* __restrict__ x, long long* __restrict__ out, int m, int n) {
    const long long row = (long long)blockIdx.x * ROW_ROWS + (ROW_ROWS > 1 ? threadIdx.x / 32 : 0);
    const int lane = ROW_ROWS > 1 ? threadIdx.x % 32 : threadIdx.x;
    if (row >= m) {
        return;
    }
    const Best best = walk(x + row * n, n, lane);
    const Place found = over_row({ordered(best.value), best.at});
    // Where nothing is above -inf any place will do.
    if (found.at == NOWHERE ? lane == 0 : found.at == best.at) {
        out[row] = found.at == NOWHERE ? 0 : best.at + best.element();
    }
}

// 2. `parts` blocks a row, each `part` elements of it; the one of a row that is done last merges what they found. `tickets` count
// the finished blocks of each row and are 0 again when the last one has taken its ticket.
extern "C" __global__ void __launch_bounds__(ROW_LANES, ROW_RESIDENT) argmax_words_split(
    const ELEMENT* __restrict__ x, unsigned* __restrict__ keys, int* __restrict__ places, unsigned* __restrict__ tickets,
    long long* __restrict__ out, int n, int parts, int part) {
    const long long row = blockIdx.x / parts;
    const int first = (int)(blockIdx.x % parts) * part;
    const Best best = walk(x + row * n + first, n - first < part ? n - first : part, threadIdx.x);
    Place found = over_row({ordered(best.value), best.at});
    // The warp of the thread that holds the word goes on.
    const bool holds = found.at == NOWHERE ? threadIdx.x == 0 : found.at == best.at;
    const unsigned holders = __ballot_sync(EVERY_LANE, holds);
    if (holders == 0) {
        return;
    }
    unsigned before = 0;
    if (holds) {
        keys[blockIdx.x] = found.key;
        places[blockIdx.x] = found.at == NOWHERE ? NOWHERE : first + best.at + best.element();
        __threadfence();
        before = atomicInc(tickets + row, parts - 1);
    }
    if (__shfl_sync(EVERY_LANE, before, __ffs(holders) - 1) != parts - 1) {
        return;
    }
    __threadfence();
    found = {0u, NOWHERE};
    for (int k = threadIdx.x % 32; k < parts; k += 32) {
        const Place other = {__ldcg(keys + row * parts + k), __ldcg(places + row * parts + k)};
        // Parts come in ascending order.
        found = other.key > found.key ? other : found;
    }
    found = over_warp(found);
    if (threadIdx.x % 32 == 0) {
        out[row] = found.at == NOWHERE ? 0 : found.at;
    }
}
