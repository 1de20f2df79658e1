// CUDA C++ kernel that copies the rows that ids name in slices, for long rows. UNIT is unsigned short or unsigned, as wide as an element;
// nothing is converted, so bits stay as they are.
#include <cuda_bf16.h>

#include "loads_first.cuh"
#include "two_vectors.cuh"

// THREADS of a block, VECTORS of a thread. WHOLE: whether all rows of x begin on 16 bytes and are whole vectors.
constexpr int SLICE = THREADS * VECTORS;  // 16-byte vectors

// blockIdx.x counts the rows of the output, blockIdx.y the slices of a row: the same slice of all rows is copied at about the same time, so
// that what several ids name is read from memory once and from the L2 afterwards. In the order of the output, a row of more than the L2 is
// read from memory each time.
// Stores are of 16-byte vectors wherever the rows of x and of the output begin. What is stored together then lies in two vectors of x,
// shifted by as many bytes for all of a row. Both are loaded, one of them from L1, and none beyond the matrix of x, which is
// `x_units` long. `row_units`: a row's length; `slices`: of a row, with those that begin behind it. Where rows are whole vectors, nothing of this
// is computed between the id and the loads.
extern "C" __global__ void __launch_bounds__(THREADS) gather_slices(
    const UNIT* __restrict__ x, const long long* __restrict__ ids, UNIT* __restrict__ out, long long row_units, long long x_units,
    int slices) {
    constexpr int WIDTH = 16 / sizeof(UNIT);
    const UNIT* from = x + __ldg(ids + blockIdx.x) * row_units;
    UNIT* to = out + blockIdx.x * row_units;
    // Units before the first vector, and by how many the vectors of x begin earlier.
    long long head = 0, vectors = row_units / WIDTH;
    int shift = 0;
    if constexpr (!WHOLE) {
        head = (16 - reinterpret_cast<unsigned long long>(to) % 16) % 16 / sizeof(UNIT);
        shift = (int)(reinterpret_cast<unsigned long long>(from + head) % 16 / sizeof(UNIT));
        if (from + head - shift < x) {
            head += WIDTH;
        }
        vectors = head < row_units ? (row_units - head) / WIDTH : 0;
        if (shift && vectors && from + head + vectors * WIDTH + (WIDTH - shift) > x + x_units) {
            --vectors;
        }
    }
    const uint4* sources = reinterpret_cast<const uint4*>(from + head - shift);
    uint4* targets = reinterpret_cast<uint4*>(to + head);
    const int next = shift ? 1 : 0;
    for (int slice = blockIdx.y; slice < slices; slice += gridDim.y) {
        const long long first = (long long)slice * SLICE + threadIdx.x;
        uint4 low[VECTORS], high[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            if (first + k * THREADS < vectors) {
                low[k] = __ldg(sources + first + k * THREADS);
            }
        }
        if (next) {
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                if (first + k * THREADS < vectors) {
                    high[k] = __ldg(sources + first + k * THREADS + 1);
                }
            }
            loads_first(low);
            loads_first(high);
#pragma unroll
            for (int k = 0; k < VECTORS; ++k) {
                low[k] = bytes_of_two_vectors(low[k], high[k], shift * (int)sizeof(UNIT));
            }
        }
#pragma unroll
        for (int k = 0; k < VECTORS; ++k) {
            if (first + k * THREADS < vectors) {
                targets[first + k * THREADS] = low[k];
            }
        }
    }
    // What is before the first vector and behind the last: up to two vectors each.
    if (!WHOLE && blockIdx.y == 0) {
        if (head > row_units) {
            head = row_units;
        }
        if (threadIdx.x < head) {
            to[threadIdx.x] = __ldg(from + threadIdx.x);
        }
        const long long behind = head + vectors * WIDTH + threadIdx.x;
        if (behind < row_units) {
            to[behind] = __ldg(from + behind);
        }
    }
}
