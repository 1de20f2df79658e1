// What a kernel with warpgroups of 128 threads needs beside copies and products (sm_90a only): the address of its shared memory, registers that
// move from one warpgroup to another, a barrier of one warpgroup, and stores of fragments to shared memory.
// tests/ops/cuda/warpgroups.cuh does the same with the processor, so that kernels can be tested without a GPU.
#pragma once

// The first multiple of 1024 bytes in dynamic shared memory, where TMA's swizzle of 128 bytes may begin.
__device__ __forceinline__ unsigned aligned_shared_memory() {
    extern __shared__ __align__(1024) unsigned char memory[];
    return ((unsigned)__cvta_generic_to_shared(memory) + 1023) / 1024 * 1024;
}

// The address of the dynamic shared memory of the block.
__device__ __forceinline__ unsigned dynamic_shared_memory() {
    extern __shared__ __align__(1024) unsigned char memory[];
    return (unsigned)__cvta_generic_to_shared(memory);
}

// By all threads of a warpgroup: release registers down to, or wait for and take registers up to, this many a thread.
template <int Registers> __device__ __forceinline__ void release_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers> __device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

__device__ __forceinline__ void warpgroup_barrier(int warpgroup) {
    asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory");
}

// Four matrices of 8×8 elements of 16 bits, a register each, to rows of 16 bytes; lane i gives the address of row i.
__device__ __forceinline__ void store_matrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}
// The same of their transposes: lane i gives the address of column i.
__device__ __forceinline__ void store_transposed(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

// Two neighbouring 32-bit numbers.
__device__ __forceinline__ void load_two(unsigned& first, unsigned& second, unsigned from) {
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(first), "=r"(second) : "r"(from) : "memory");
}
