// A few long rows: several blocks share a row. A first launch leaves one partial result a block in memory, a second one merges those of a
// row, in one order, and processes the elements. What the first launch read last is processed first, because it is in L2 still.
//
// A row is divided into chunks of ROW_LANES * ROW_VECTORS 16-byte vectors, of which a block takes a part; Row (rows.cuh) is positioned on one
// chunk at a time by its `rank`. Compiled for one row a block and no cluster.
#pragma once
#include "rows.cuh"

struct Piece {
    int first, last;  // chunks of the row that are this block's
    template <typename R> __device__ __forceinline__ Piece(R& row, int parts) {
        row.seek(blockIdx.x / parts);
        const int chunks = (row.vectors + ROW_LANES * ROW_VECTORS - 1) / (ROW_LANES * ROW_VECTORS);
        const long long piece = blockIdx.x % parts;
        first = (int)(piece * chunks / parts);
        last = (int)((piece + 1) * chunks / parts);
    }
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
