// Slabs (slab_rows.cuh) through a ring of SLAB_STAGES stages of shared memory (sm_90 and later): a block is persistent, and while it processes
// one slab, the copy engine brings the next ones and writes the last one. With one stage there is a block a slab. The barriers of the stages are
// behind them.
#pragma once
#include "bulk.cuh"
#include "slab_rows.cuh"

__device__ __forceinline__ unsigned slab_address() {
    extern __shared__ __align__(16) unsigned char memory[];
    return (unsigned)__cvta_generic_to_shared(memory);
}
// Both addresses and `bytes` are multiples of 16.
__device__ __forceinline__ void write_slab(void* to, unsigned from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
}

// The first slab of a block has its number, and the others follow gridDim.x slabs apart.
template <typename T, int INPUTS, int OUTPUTS, typename Process>
__device__ __forceinline__ void process_in_stages(const SlabTensors<T, INPUTS, OUTPUTS>& tensors, const SlabSizes& sizes, Process process) {
    const long long step = (long long)gridDim.x * sizes.rows_a_slab;
    const int stage_bytes = INPUTS * sizes.tensor_bytes;
    const unsigned stages = slab_address(), barriers = stages + SLAB_STAGES * stage_bytes;
    auto bring = [&](int stage, long long first) {
        if (first < sizes.m) {
            const Slab slab(first, sizes);
            const int bytes = slab.in_vectors<T>() * (int)sizeof(T);
            barrier_expect(barriers + 8 * stage, INPUTS * bytes);
            if (bytes > 0) {
#pragma unroll
                for (int i = 0; i < INPUTS; ++i) {
                    const char* from = reinterpret_cast<const char*>(tensors.from[i] + slab.start());
                    copy_bulk(stages + stage * stage_bytes + i * sizes.tensor_bytes, from, bytes, barriers + 8 * stage);
                }
            }
        }
    };
    long long first = (long long)blockIdx.x * sizes.rows_a_slab;
    if (threadIdx.x == 0) {
#pragma unroll
        for (int stage = 0; stage < SLAB_STAGES; ++stage) {
            barrier_init(barriers + 8 * stage, 1);
        }
        barrier_init_done();
        fence_for_tma();
#pragma unroll 1
        for (int stage = 0; stage < SLAB_STAGES; ++stage) {
            bring(stage, first + stage * step);
        }
    }
    __syncthreads();
    int stage = 0, parity = 0, previous = -1;
#pragma unroll 1
    for (; first < sizes.m; first += step) {
        const Slab slab(first, sizes);
        T* elements = slab_memory<T>(stage * stage_bytes);
        const int tensor = sizes.tensor_bytes / (int)sizeof(T), in_vectors = slab.in_vectors<T>();
        barrier_wait(barriers + 8 * stage, parity);
        if (in_vectors < slab.elements()) {
#pragma unroll
            for (int i = 0; i < INPUTS; ++i) {
                copy_elements(tensors.from[i] + slab.start(), elements + i * tensor, in_vectors, slab.elements());
            }
            __syncthreads();
        }
        each_row<T, INPUTS>(slab, elements, sizes.tensor_bytes, process);
        if (OUTPUTS > 0) {
            fence_for_tma();
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            if (OUTPUTS > 0) {
                const int bytes = in_vectors * (int)sizeof(T);
                if (bytes > 0) {
#pragma unroll
                    for (int i = 0; i < OUTPUTS; ++i) {
                        write_slab(tensors.to[i] + slab.start(), stages + stage * stage_bytes + i * sizes.tensor_bytes, bytes);
                    }
                }
                store_commit();
                // The previous slab has left its stage, which the next one may enter. This one has just begun to leave.
                store_wait_read<1>();
                if (previous >= 0) {
                    bring(previous, first + (SLAB_STAGES - 1) * step);
                }
            } else {
                bring(stage, first + SLAB_STAGES * step);
            }
        }
        if (in_vectors < slab.elements()) {
#pragma unroll
            for (int i = 0; i < OUTPUTS; ++i) {
                copy_elements(elements + i * tensor, tensors.to[i] + slab.start(), in_vectors, slab.elements());
            }
        }
        previous = stage;
        if (++stage == SLAB_STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    // Shared memory must last until the stores have read it.
    if (OUTPUTS > 0 && threadIdx.x == 0) {
        store_wait();
    }
}
