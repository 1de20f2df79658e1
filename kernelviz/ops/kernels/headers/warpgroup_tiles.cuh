// What a warpgroup of 128 threads does together (sm_90a), and its way from registers through shared memory to device memory. Addresses of
// shared memory are 32-bit numbers, as __cvta_generic_to_shared gives them.
#pragma once

template <int Registers>
__device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
// The sum of a number of each thread of the warp, for all of them.
__device__ __forceinline__ int warp_sum(int value) {
    int sum;
    asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(value));
    return sum;
}
// Among the threads of one warpgroup; barrier 0 is that of __syncthreads.
__device__ __forceinline__ void warpgroup_barrier(int warpgroup) {
    asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory");
}
// Four matrices of 8×8 elements of 16 bits, a register each, to rows of 16 bytes; lane i gives the address of row i.
__device__ __forceinline__ void store_matrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared::cta.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}
__device__ __forceinline__ uint4 load_shared_16_bytes(unsigned from) {
    uint4 value;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w) : "r"(from)
                 : "memory");
    return value;
}
