// What kernels with one element a thread share. Few elements take about 1 us, the latency of one load and of what precedes it: so the index has
// 32 bits where all indexes fit, the size of a block is a constant, and all addresses are known before the first load.
#pragma once

// `OneElement` (one_element.py) passes both.
#ifndef INDEX
#define INDEX long long
#define BLOCK_THREADS 256
#endif

__device__ __forceinline__ INDEX element_of_thread() { return (INDEX)blockIdx.x * BLOCK_THREADS + threadIdx.x; }

// An address in global memory that is computed here. Left alone, the compiler computes it where it is used: after threads without an element have
// left, or after what the threads load has come, and a pointer is then read from constant memory so late.
template <typename T> __device__ __forceinline__ T* address_now(T* address) {
    unsigned long long bits = __cvta_generic_to_global(address);
    asm volatile("" : "+l"(bits));
    return static_cast<T*>(__cvta_global_to_generic(bits));
}
