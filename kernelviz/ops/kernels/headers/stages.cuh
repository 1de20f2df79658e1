// What a kernel whose operands pass through STAGES stages of shared memory, filled by TMA for one block or for CLUSTER of them, needs beside tma.cuh.
// The file that includes this includes tma.cuh and defines STAGES and CLUSTER first.
#pragma once

struct Stage {
    int number = 0, parity = 0;

    __device__ __forceinline__ void next() {
        if (++number == STAGES) {
            number = 0;
            parity ^= 1;
        }
    }
};

__device__ __forceinline__ void wait_for_cluster() {
    if (CLUSTER > 1) {
        cluster_barrier();
    } else {
        __syncthreads();
    }
}

// Load a box for all blocks of the cluster, each of which loads other boxes.
__device__ __forceinline__ void load_for_cluster(unsigned to, const char* map, int column, int row, unsigned full) {
    if (CLUSTER > 1) {
        load_box_for((1 << CLUSTER) - 1, to, map, column, row, full);
    } else {
        load_box(to, map, column, row, full);
    }
}
