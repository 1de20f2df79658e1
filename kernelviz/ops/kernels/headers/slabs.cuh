// How slabs of rows (slab_rows.cuh) come into shared memory and leave it: with -DSLAB_BULK=0 each block copies one slab through registers;
// otherwise SLAB_STAGES slabs of a block are in flight by bulk copies (slab_stages.cuh). Very short rows may stay in registers instead
// (slab_registers.cuh). -DSLAB_BLOCKS: blocks an SM that registers must allow.
#pragma once
#include "slab_registers.cuh"
#include "slab_rows.cuh"
#include "slab_stages.cuh"

constexpr int SLAB_IN_FLIGHT = 4;  // 16-byte vectors of a thread
// From memory into shared memory. The caller synchronises the block before it reads.
template <typename T> __device__ __forceinline__ void load_slab(const T* __restrict__ from, T* to, int elements) {
    constexpr int WIDTH = Vec16<T>::WIDTH;
    const int vectors = elements / WIDTH;
#pragma unroll 1
    for (int i = threadIdx.x; i < vectors; i += SLAB_IN_FLIGHT * SLAB_THREADS) {
        uint4 bits[SLAB_IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < SLAB_IN_FLIGHT; ++k) {
            if (i + k * SLAB_THREADS < vectors) {
                bits[k] = __ldcs(reinterpret_cast<const uint4*>(from) + i + k * SLAB_THREADS);
            }
        }
#pragma unroll
        for (int k = 0; k < SLAB_IN_FLIGHT; ++k) {
            if (i + k * SLAB_THREADS < vectors) {
                reinterpret_cast<uint4*>(to)[i + k * SLAB_THREADS] = bits[k];
            }
        }
    }
    copy_elements(from, to, vectors * WIDTH, elements);
}
// From shared memory, after the caller has synchronised the block.
template <typename T> __device__ __forceinline__ void store_slab(const T* from, T* __restrict__ to, int elements) {
    constexpr int WIDTH = Vec16<T>::WIDTH;
    const int vectors = elements / WIDTH;
#pragma unroll 2
    for (int i = threadIdx.x; i < vectors; i += SLAB_THREADS) {
        __stcs(reinterpret_cast<uint4*>(to) + i, reinterpret_cast<const uint4*>(from)[i]);
    }
    copy_elements(from, to, vectors * WIDTH, elements);
}

// The slab with the number of this block.
template <typename T, int INPUTS, int OUTPUTS, typename Process>
__device__ __forceinline__ void process_one_slab(const SlabTensors<T, INPUTS, OUTPUTS>& tensors, const SlabSizes& sizes, Process process) {
    const Slab slab((long long)blockIdx.x * sizes.rows_a_slab, sizes);
#pragma unroll
    for (int i = 0; i < INPUTS; ++i) {
        load_slab(tensors.from[i] + slab.start(), slab_memory<T>(i * sizes.tensor_bytes), slab.elements());
    }
    __syncthreads();
    each_row<T, INPUTS>(slab, slab_memory<T>(), sizes.tensor_bytes, process);
    if (OUTPUTS > 0) {
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < OUTPUTS; ++i) {
        store_slab(slab_memory<T>(i * sizes.tensor_bytes), tensors.to[i] + slab.start(), slab.elements());
    }
}

// Call `process(row)` (a SlabRow) for each row of a matrix. It replaces elements of inputs by those of outputs.
template <typename T, int INPUTS, int OUTPUTS, typename Process>
__device__ __forceinline__ void process_slabs(const SlabTensors<T, INPUTS, OUTPUTS>& tensors, const SlabSizes& sizes, Process process) {
    if constexpr (SLAB_ROWS > 0) {
        process_in_registers(tensors, sizes, process);
    } else if constexpr (SLAB_BULK) {
        process_in_stages(tensors, sizes, process);
    } else {
        process_one_slab(tensors, sizes, process);
    }
}
