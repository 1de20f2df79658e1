// A few long rows: several blocks share a row. A first launch leaves one partial result a block in memory, a second one merges those of a
// row, in one order, and processes the elements. What the first launch read last is processed first, because it is in L2 still.
//
// A row is divided into chunks of ROW_LANES * ROW_VECTORS 16-byte vectors, which its blocks take in turn, so that they read and write neighbouring
// memory at a time; Row (rows.cuh) is positioned on one chunk at a time by its `rank`. Compiled for one row a block and no cluster. H200, with a
// piece of the row for each block: quantize_fp8 moved 4.3 TB/s in pieces of 0.8 and 1.0 MB, 3.7 of 1.4, 3.3 of 1.7 and 2.9, and 2.8 of 3.9; softmax
// 4.1 in pieces of 1.0 MB and 2.6 of 1.4; kernels that only read, 4.0 in pieces of any size. Chunks in turn were not measured.
#pragma once
#include "rows.cuh"

struct Piece {
    int first, count, step;  // chunks of the row that are this block's
    template <typename R> __device__ __forceinline__ Piece(R& row, int parts) {
        row.seek(blockIdx.x / parts);
        const int chunks = (row.vectors + ROW_LANES * ROW_VECTORS - 1) / (ROW_LANES * ROW_VECTORS);
        first = blockIdx.x % parts;
        count = (chunks - 1 - first + parts) / parts;  // parts > first, so that nothing below 0 is divided
        step = parts;
    }
    __device__ __forceinline__ int last() const { return first + (count - 1) * step; }
};

// The merged partial results of this row, in every thread. All threads of the block must take part.
template <typename R, typename V, typename Combine>
__device__ __forceinline__ V merged(R& row, const V* __restrict__ partials, int parts, Combine combine, V identity) {
    V value = identity;
    for (int i = threadIdx.x; i < parts; i += ROW_LANES) {
        value = combine(value, partials[row.row * parts + i]);
    }
    return row.reduce(value, combine, identity);
}
