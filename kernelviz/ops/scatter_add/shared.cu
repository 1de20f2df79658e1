// CUDA C++ kernel of `scatter_add` for a table of sums that fits into shared memory. ELEMENT is float, __half or __nv_bfloat16; sums are in
// fp32. ROW: the length of a row if it is shorter than a 16-byte vector, else 0.
#include "loads_first.cuh"
#include "vec16.cuh"

constexpr int THREADS = 1024, WIDTH = Vec16<ELEMENT>::WIDTH;
// Rows that a vector may have elements of.
constexpr int IDS = ROW == 0 ? 2 : WIDTH % ROW == 0 ? WIDTH / ROW : (WIDTH - 2) / ROW + 2;

// A block adds up what its rows add to each sum, and then adds that to `sum`: the L2, where additions to one address wait for each other,
// gets `entries` additions of a block instead of one for each element of src. A table has COPIES numbers for each sum, side by side. Lane l
// adds to the one of l % COPIES, so that with 32 the lanes of a warp never wait for each other, neither for a number nor for a bank.
// entries: v d. Ids are below 2^31, so their lower halves are read.
extern "C" __global__ void __launch_bounds__(THREADS) scatter_shared(
    float* sum, const ELEMENT* __restrict__ src, const int* __restrict__ ids, long long t, int length, int entries) {
    extern __shared__ float memory[];
    float* table = reinterpret_cast<float*>(memory);
    const int d = ROW ? ROW : length;
    for (int i = threadIdx.x; i < entries * COPIES; i += THREADS) {
        table[i] = 0.0f;
    }
    __syncthreads();
    float* mine = table + threadIdx.x % COPIES;
    const long long count = t * d, whole = count / WIDTH, step = (long long)gridDim.x * THREADS;
    const long long thread = (long long)blockIdx.x * THREADS + threadIdx.x;
    for (long long first = thread; first < whole; first += VECTORS * step) {
        uint4 bits[VECTORS];
        unsigned id[VECTORS][IDS];
        int column[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            const long long vector = first + k * step;
            if (vector < whole) {
                bits[k] = __ldcs(reinterpret_cast<const uint4*>(src) + vector);
                const unsigned long long begin = (unsigned long long)vector * WIDTH;
                // A division of 64 bits takes several times as long.
                const unsigned long long row = begin >> 32 ? begin / d : (unsigned)begin / (unsigned)d;
                column[k] = (int)(begin - row * d);
#pragma unroll
                for (int i = 0; i < IDS; ++i) {
                    id[k][i] = (long long)row + i < t ? (unsigned)__ldcs(ids + 2 * (row + i)) : 0u;
                }
            }
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            loads_first(bits[k]);
            loads_first(id[k]);
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            if (first + k * step < whole) {
                const ELEMENT* elements = reinterpret_cast<const ELEMENT*>(&bits[k]);
                int at = column[k];
#pragma unroll
                for (int e = 0; e < WIDTH; ++e) {
                    if (at == d) {
                        at = 0;
#pragma unroll
                        for (int i = 0; i + 1 < IDS; ++i) {
                            id[k][i] = id[k][i + 1];
                        }
                    }
                    atomicAdd(mine + (id[k][0] * d + at) * COPIES, to_float(elements[e]));
                    ++at;
                }
            }
        }
    }
    // The elements behind the last whole vector.
    const long long behind = whole * WIDTH + thread;
    if (behind < count) {
        atomicAdd(mine + (ids[behind / d * 2] * d + (int)(behind % d)) * COPIES, to_float(src[behind]));
    }
    __syncthreads();
    // Blocks begin at different sums, so that fewer additions to one address meet.
    const int start = (int)((long long)entries * blockIdx.x / gridDim.x);
    for (int i = threadIdx.x; i < entries; i += THREADS) {
        const int entry = i + start < entries ? i + start : i + start - entries;
        float total = 0.0f;
#pragma unroll 8
        for (int c = 0; c < COPIES; ++c) {
            total += table[entry * COPIES + (c + threadIdx.x) % COPIES];
        }
        atomicAdd(sum + entry, total);
    }
}
