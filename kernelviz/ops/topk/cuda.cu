// CUDA C++ kernels of `topk`. ELEMENT is float, __half or __nv_bfloat16.
#include "vec16.cuh"

#ifndef THREADS
#define THREADS 512
#endif
#ifndef VECTORS
#define VECTORS 4
#endif
typedef unsigned long long Entry;
constexpr int WIDTH = Vec16<ELEMENT>::WIDTH;
constexpr int MOST = 1024;          // the largest k
constexpr int GROUP = 4 * THREADS;  // elements that a block looks at between two barriers
constexpr int ROOM = 2 * GROUP > MOST + GROUP ? 2 * GROUP : MOST + GROUP;
constexpr unsigned ALL = 0xffffffffu;

// The lowest bit of a key that may be set: a 16-bit number widened to fp32 ends in zeros.
template <typename T> struct Lowest { static constexpr int BIT = 0; };
template <> struct Lowest<__half> { static constexpr int BIT = 13; };
template <> struct Lowest<__nv_bfloat16> { static constexpr int BIT = 16; };
constexpr int LOWEST = Lowest<ELEMENT>::BIT;

// Whole numbers in the order of the floats, NaN above all, none of them 0. (A subnormal fp16 widens to a full mantissa
// only of bits that fp16 has, so its lowest bits are zeros, too.)
__device__ __forceinline__ unsigned key_of(float v) {
    const unsigned bits = __float_as_uint(v);
    return v != v ? ALL : bits ^ ((int)bits < 0 ? ALL : 0x80000000u);
}
__device__ __forceinline__ float value_of(unsigned key) {
    return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}
// Key and index in one number: of equal keys the one with the smaller index is larger, and no two entries are equal.
__device__ __forceinline__ Entry entry_of(unsigned key, unsigned at) { return (Entry)key << 32 | (ALL - at); }

struct Shared {
    Entry entries[ROOM];
    unsigned counts[256];
    int fill, ties;            // entries; of those equal to the threshold, how many were kept
    unsigned low, high;        // the smallest and the largest key
    unsigned digit;            // of the threshold, as found in `counts`
    int above, within;         // how many have a larger digit, and how many this one
    unsigned threshold;        // keys up to this one are no longer of interest
    bool last;
};

// Find the digit of the need-th largest key, by the first warp; between two barriers of the block.
__device__ __forceinline__ void find_digit(Shared& s, int need) {
    if (threadIdx.x >= 32) {
        return;
    }
    const int lane = threadIdx.x;
    int mine = 0;
#pragma unroll
    for (int d = 0; d < 8; ++d) {
        mine += s.counts[255 - lane * 8 - d];
    }
    int upto = mine;
#pragma unroll
    for (int apart = 1; apart < 32; apart *= 2) {
        const int before = __shfl_up_sync(ALL, upto, apart);
        upto += lane >= apart ? before : 0;
    }
    int above = upto - mine;
    if (above < need && need <= upto) {
        for (int d = 255 - lane * 8;; --d) {
            const int here = s.counts[d];
            if (above + here >= need) {
                s.digit = d;
                s.above = above;
                s.within = here;
                return;
            }
            above += here;
        }
    }
}

// Keep the k largest of more than k entries and set the threshold. Called by the whole block after a barrier; ends with one.
__device__ __noinline__ void keep_largest(Shared& s, int k) {
    constexpr int EACH = (ROOM + THREADS - 1) / THREADS;
    const int fill = s.fill;
    Entry mine[EACH];
    unsigned low = ALL, high = 0;
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        const int i = threadIdx.x + j * THREADS;
        mine[j] = i < fill ? s.entries[i] : 0;
        if (i < fill) {
            low = min(low, (unsigned)(mine[j] >> 32));
            high = max(high, (unsigned)(mine[j] >> 32));
        }
    }
    low = __reduce_min_sync(ALL, low);
    high = __reduce_max_sync(ALL, high);
    if (threadIdx.x == 0) {
        s.low = ALL;
        s.high = 0;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        atomicMin(&s.low, low);
        atomicMax(&s.high, high);
    }
    __syncthreads();
    // Digits of 8 bits from the first bit in which keys differ; above it all are the same.
    const unsigned differ = s.low ^ s.high;
    int shift = max(32 - __clz(differ), LOWEST), need = k;
    Entry prefix = (Entry)s.high >> shift;
    while (shift > LOWEST) {
        const int next = max(shift - 8, LOWEST);
        for (int i = threadIdx.x; i < 256; i += THREADS) {
            s.counts[i] = 0;
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < EACH; ++j) {
            const Entry key = mine[j] >> 32;
            if (mine[j] != 0 && key >> shift == prefix) {
                atomicAdd(&s.counts[(key >> next) & ((1u << (shift - next)) - 1)], 1u);
            }
        }
        __syncthreads();
        find_digit(s, need);
        __syncthreads();
        prefix = prefix << (shift - next) | s.digit;
        need -= s.above;
        shift = next;
        if (s.within == need) {
            break;
        }
    }
    if (threadIdx.x == 0) {
        s.fill = 0;
        s.ties = 0;
        s.threshold = (unsigned)(prefix << shift);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < EACH; ++j) {
        const Entry key = mine[j] >> 32 >> shift;
        if (mine[j] != 0 && (key > prefix || (key == prefix && atomicAdd(&s.ties, 1) < need))) {
            s.entries[atomicAdd(&s.fill, 1)] = mine[j];
        }
    }
    __syncthreads();
}

// Add four entries of each thread (0: none) to the candidates, if they are above the threshold. Called by the whole block.
__device__ __forceinline__ void join(Shared& s, const Entry (&entry)[4], bool any, int k) {
    bool full = false;
    if (__any_sync(ALL, any)) {
        int mine = 0;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            mine += entry[e] != 0;
        }
        const int lane = threadIdx.x % 32;
        int upto = mine;
#pragma unroll
        for (int apart = 1; apart < 32; apart *= 2) {
            const int before = __shfl_up_sync(ALL, upto, apart);
            upto += lane >= apart ? before : 0;
        }
        const int total = __shfl_sync(ALL, upto, 31);
        int at = lane == 0 ? atomicAdd(&s.fill, total) : 0;
        at = __shfl_sync(ALL, at, 0);
        full = at + total > ROOM - GROUP;
        at += upto - mine;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            if (entry[e] != 0) {
                s.entries[at++] = entry[e];
            }
        }
    }
    // The thread whose entries reach the limit sets a flag: the count itself may have changed before others read it.
    if (__syncthreads_or(full)) {
        keep_largest(s, k);
    }
}

__device__ __forceinline__ void offer(
    Shared& s, const float (&v)[4], unsigned at, bool valid, int k, unsigned threshold, float limit) {
    bool any = false;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        any |= !(v[e] <= limit);
    }
    any &= valid;
    Entry entry[4] = {};
    if (any) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const unsigned key = key_of(v[e]);
            if (key > threshold) {
                entry[e] = entry_of(key, at + e);
            }
        }
    }
    join(s, entry, any, k);
}

// Write the k entries in descending order to `values` and `indices`.
__device__ __forceinline__ void write_sorted(Shared& s, ELEMENT* values, long long* indices, int k) {
    if (k <= 256) {
        // Each thread counts the larger entries.
        for (int i = threadIdx.x; i < k; i += THREADS) {
            const Entry mine = s.entries[i];
            int rank = 0;
#pragma unroll 8
            for (int j = 0; j < k; ++j) {
                rank += s.entries[j] > mine;
            }
            values[rank] = from_float<ELEMENT>(value_of(mine >> 32));
            indices[rank] = ALL - (unsigned)mine;
        }
        return;
    }
    for (int i = k + threadIdx.x; i < MOST; i += THREADS) {
        s.entries[i] = 0;
    }
    for (int size = 2; size <= MOST; size *= 2) {
        for (int apart = size / 2; apart > 0; apart /= 2) {
            __syncthreads();
            for (int t = threadIdx.x; t < MOST / 2; t += THREADS) {
                const int i = 2 * t - t % apart, j = i + apart;
                const Entry a = s.entries[i], b = s.entries[j];
                if ((a < b) == ((i & size) == 0)) {
                    s.entries[i] = b;
                    s.entries[j] = a;
                }
            }
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += THREADS) {
        const Entry mine = s.entries[i];
        values[i] = from_float<ELEMENT>(value_of(mine >> 32));
        indices[i] = ALL - (unsigned)mine;
    }
}

// 1. A block a row, radix select: count the rows' keys by their highest 8 bits, continue with the digit of the k-th
// largest, and with its next 8 bits. The row is read two (bf16), three or four times (fp32), and once more to collect the larger elements.
extern "C" __global__ void __launch_bounds__(THREADS) topk_radix_select(
    const ELEMENT* __restrict__ x, ELEMENT* __restrict__ values, long long* __restrict__ indices, int n, int k) {
    __shared__ Shared s;
    const ELEMENT* row = x + (long long)blockIdx.x * n;
    Entry prefix = 0;
    int shift = 32, need = k;
    while (shift > LOWEST) {
        const int next = max(shift - 8, LOWEST);
        for (int i = threadIdx.x; i < 256; i += THREADS) {
            s.counts[i] = 0;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += THREADS) {
            const Entry key = key_of(to_float(row[i]));
            if (key >> shift == prefix) {
                atomicAdd(&s.counts[(key >> next) & ((1u << (shift - next)) - 1)], 1u);
            }
        }
        __syncthreads();
        find_digit(s, need);
        __syncthreads();
        prefix = prefix << (shift - next) | s.digit;
        need -= s.above;
        shift = next;
    }
    if (threadIdx.x == 0) {
        s.fill = 0;
        s.ties = 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += THREADS) {
        const unsigned whole = key_of(to_float(row[i]));
        const Entry key = (Entry)whole >> shift;
        if (key > prefix || (key == prefix && atomicAdd(&s.ties, 1) < need)) {
            s.entries[atomicAdd(&s.fill, 1)] = entry_of(whole, i);
        }
    }
    __syncthreads();
    write_sorted(s, values + (long long)blockIdx.x * k, indices + (long long)blockIdx.x * k, k);
}

// 2. The row is read once: elements not above the k-th largest so far are dropped; the others are candidates in shared memory,
// reduced to the k largest when the memory is full. Where rows are few, several blocks share a row, and the last of them to finish
// merges their candidates. `tickets` count the finished blocks of each row; the last block resets its row's ticket to 0.
extern "C" __global__ void __launch_bounds__(THREADS) topk_threshold(
    const ELEMENT* __restrict__ x, Entry* __restrict__ candidates, unsigned* __restrict__ tickets, ELEMENT* __restrict__ values,
    long long* __restrict__ indices, int n, int k, int splits, int part) {
    __shared__ Shared s;
    const long long row = blockIdx.x / splits;
    const int piece = blockIdx.x % splits;
    const int first = piece * part;
    const int length = n - first < part ? n - first : part;
    const ELEMENT* from = x + row * n + first;
    const int before = (16 - reinterpret_cast<unsigned long long>(from) % 16) % 16 / sizeof(ELEMENT);
    const int head = before < length ? before : length;
    const int count = (length - head) / WIDTH;
    const Vec16<ELEMENT>* vectors = reinterpret_cast<const Vec16<ELEMENT>*>(from + head);
    if (threadIdx.x == 0) {
        s.fill = 0;
        s.threshold = 0;
    }
    __syncthreads();
    {
        // The elements before the first whole vector and after the last.
        const int tail_index = head + count * WIDTH + threadIdx.x - 32;
        const int at = threadIdx.x < 32 ? threadIdx.x : tail_index;
        Entry entry[4] = {};
        const bool any = threadIdx.x < 32 ? threadIdx.x < head : threadIdx.x < 64 && tail_index < length;
        if (any) {
            entry[0] = entry_of(key_of(to_float(from[at])), first + at);
        }
        join(s, entry, any, k);
    }
    for (int base = 0; base < count; base += VECTORS * THREADS) {
        Vec16<ELEMENT> vector[VECTORS];
#pragma unroll
        for (int w = 0; w < VECTORS; ++w) {
            const int i = base + w * THREADS + threadIdx.x;
            if (i < count) {
                vector[w] = load_streaming(vectors + i);
            }
        }
#pragma unroll
        for (int w = 0; w < VECTORS; ++w) {
            if (base + w * THREADS >= count) {
                break;
            }
            const int i = base + w * THREADS + threadIdx.x;
#pragma unroll
            for (int offset = 0; offset < WIDTH; offset += 4) {
                float v[4];
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    v[e] = to_float(vector[w].e[offset + e]);
                }
                // NaN while there is no threshold: no comparison with it is true.
                const unsigned threshold = s.threshold;
                const float limit = threshold == 0 ? __uint_as_float(0x7fffffffu) : value_of(threshold);
                offer(s, v, first + head + i * WIDTH + offset, i < count, k, threshold, limit);
            }
        }
    }
    __syncthreads();
    if (s.fill > k) {
        keep_largest(s, k);
    }
    if (splits > 1) {
        Entry* mine = candidates + (row * splits + piece) * k;
        for (int i = threadIdx.x; i < k; i += THREADS) {
            mine[i] = i < s.fill ? s.entries[i] : 0;
        }
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            s.last = atomicInc(tickets + row, splits - 1) == splits - 1;
            s.fill = 0;
            s.threshold = 0;
        }
        __syncthreads();
        if (!s.last) {
            return;
        }
        __threadfence();
        const Entry* all = candidates + row * splits * k;
        for (int base = 0; base < splits * k; base += GROUP) {
            const unsigned threshold = s.threshold;
            Entry entry[4] = {};
            bool any = false;
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int i = base + e * THREADS + threadIdx.x;
                const Entry its = i < splits * k ? __ldcg(all + i) : 0;
                if ((unsigned)(its >> 32) > threshold) {
                    entry[e] = its;
                    any = true;
                }
            }
            join(s, entry, any, k);
        }
        __syncthreads();
        if (s.fill > k) {
            keep_largest(s, k);
        }
    }
    write_sorted(s, values + row * k, indices + row * k, k);
}
