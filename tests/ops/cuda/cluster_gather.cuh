// kernelviz/ops/kernels/headers/cluster_gather.cuh for the processor.
#pragma once

inline unsigned block_in_cluster() { return emulated::rank_in_cluster(); }
inline void block_has_started() {}
template <int BLOCKS> void gather(float value, float* of_block) {
    static float values[BLOCKS][BLOCKS];  // by reader
    emulated::cluster_barrier();
    if (threadIdx.x < BLOCKS) {
        values[threadIdx.x][block_in_cluster()] = value;
    }
    emulated::cluster_barrier();
    if (threadIdx.x < BLOCKS) {
        of_block[threadIdx.x] = values[block_in_cluster()][threadIdx.x];
    }
    emulated::cluster_barrier();
}
