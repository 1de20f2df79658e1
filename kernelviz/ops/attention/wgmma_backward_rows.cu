// What the backward pass of attention computes row by row, before and after the kernel of wgmma_backward.cu, which explains it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "row_fragments.cuh"

constexpr int KEYS = 128, QUERIES = 64, WARPGROUP = 128;
constexpr int DQ_BYTES = QUERIES * DIMENSION / 2 * 4, DQ_SUMS = DIMENSION / 4;  // of a warpgroup, and of a thread

// A block has QUERIES queries of a head; a warp has a query at a time. Behind the end of the sequence, Δ is 0.
extern "C" __global__ void __launch_bounds__(256) attention_delta(
    const ELEMENT* __restrict__ o, const ELEMENT* __restrict__ d_o, float* __restrict__ deltas, float4* __restrict__ dq_sums, int length, int heads) {
    const int tiles = (length + QUERIES - 1) / QUERIES, tile = blockIdx.x % tiles, head = blockIdx.x / tiles % heads;
    const int batch = blockIdx.x / tiles / heads, lane = threadIdx.x % 32;
    constexpr int EACH = DIMENSION / 32;  // elements of a thread
    for (int i = threadIdx.x; i < QUERIES * DIMENSION / 4; i += 256) {
        dq_sums[(long long)blockIdx.x * (QUERIES * DIMENSION / 4) + i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
#pragma unroll
    for (int row = threadIdx.x / 32; row < QUERIES; row += 8) {
        const int query = tile * QUERIES + row;
        float sum = 0.0f;
        if (query < length) {
            const long long from = (((long long)batch * length + query) * heads + head) * DIMENSION + EACH * lane;
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                sum += static_cast<float>(o[from + i]) * static_cast<float>(d_o[from + i]);
            }
        }
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2) {
            sum += __shfl_xor_sync(~0u, sum, offset);
        }
        if (lane == 0) {
            deltas[(long long)blockIdx.x * QUERIES + row] = sum;
        }
    }
}

// 32 columns of dK or dV of a tile of keys: the sums of its parts in their order, which threads have as in attention_backward.
__device__ __forceinline__ void add_parts(
    const float4* __restrict__ sums, const int* __restrict__ firsts, ELEMENT* __restrict__ dk, ELEMENT* __restrict__ dv, int length, int key_heads) {
    constexpr int COLUMNS = 32, BLOCKS = DIMENSION / COLUMNS, FOURS = DIMENSION / 8, EACH = FOURS / BLOCKS;
    const int block = blockIdx.x % BLOCKS, gradient = blockIdx.x / BLOCKS % 2, tile_of_all = blockIdx.x / BLOCKS / 2;
    const int tiles = (length + KEYS - 1) / KEYS, key_head = tile_of_all / tiles % key_heads, batch = tile_of_all / tiles / key_heads;
    const int first_key = tile_of_all % tiles * KEYS + threadIdx.x / WARPGROUP * 64, end = firsts[tile_of_all + 1];
    float total[4 * EACH] = {};
#pragma unroll 4
    for (int part = firsts[tile_of_all]; part < end; ++part) {
        const float4* from = sums + (((long long)part * 2 + gradient) * FOURS + block * EACH) * (2 * WARPGROUP) + threadIdx.x;
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const float4 four = from[i * 2 * WARPGROUP];
            total[4 * i] += four.x;
            total[4 * i + 1] += four.y;
            total[4 * i + 2] += four.z;
            total[4 * i + 3] += four.w;
        }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int key = first_key + row_of_thread(half);
        ELEMENT* row = (gradient ? dv : dk) + (((long long)batch * length + key) * key_heads + key_head) * DIMENSION + block * COLUMNS;
        store_row(total, half, row, key < length);
    }
}

// A block has QUERIES queries of a head, as two warpgroups have added them up. If PARTS, the first `add_blocks` blocks add parts of dK and dV.
extern "C" __global__ void __launch_bounds__(256) attention_query(
    const float4* __restrict__ dq_sums, ELEMENT* __restrict__ dq, float scale, int length, int heads, int key_heads, int add_blocks,
    const float4* __restrict__ sums_of_parts, const int* __restrict__ firsts, ELEMENT* __restrict__ dk, ELEMENT* __restrict__ dv) {
    if (PARTS && blockIdx.x < add_blocks) {
        add_parts(sums_of_parts, firsts, dk, dv, length, key_heads);
        return;
    }
    const unsigned tile_of_all = PARTS ? blockIdx.x - add_blocks : blockIdx.x;
    const int tiles = (length + QUERIES - 1) / QUERIES, tile = tile_of_all % tiles, head = tile_of_all / tiles % heads;
    const int batch = tile_of_all / tiles / heads, warpgroup = threadIdx.x / WARPGROUP, t = threadIdx.x % WARPGROUP;
    const float4* from = dq_sums + ((long long)tile_of_all * 2 + warpgroup) * (DQ_BYTES / 16) + t;
    float sums[DQ_SUMS];
#pragma unroll
    for (int i = 0; i < DQ_SUMS / 4; ++i) {
        const float4 four = from[i * WARPGROUP];
        sums[4 * i] = four.x * scale;
        sums[4 * i + 1] = four.y * scale;
        sums[4 * i + 2] = four.z * scale;
        sums[4 * i + 3] = four.w * scale;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int query = tile * QUERIES + row_of_thread(half);
        ELEMENT* row = dq + (((long long)batch * length + query) * heads + head) * DIMENSION + warpgroup * (DIMENSION / 2);
        store_row(sums, half, row, query < length);
    }
}
