// Registers, barriers and stores of warpgroups (sm_90a only).
#pragma once

// The registers of a thread of this warpgroup, which gives the others back or waits until there are so many.
template <int Registers>
__device__ __forceinline__ void release_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void request_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

// A barrier of the 128 threads of a warpgroup. __syncthreads() is barrier 0.
__device__ __forceinline__ void warpgroup_barrier(int warpgroup) {
    asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory");
}

// Four matrices of 8×8 elements of 2 bytes, a register each, to rows of 16 bytes in shared memory; lane i gives the address of row i.
__device__ __forceinline__ void store_matrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

// The address of the dynamic shared memory of the block.
__device__ __forceinline__ unsigned dynamic_shared_memory() {
    extern __shared__ __align__(1024) unsigned char memory[];
    return (unsigned)__cvta_generic_to_shared(memory);
}
