// The element of a thread in kernels with one a thread. Few elements take about 1 us, the latency of one load and of what precedes it. So the index
// has 32 bits where all indexes fit, the size of a block is a constant, and no thread exits early: without a branch, the compiler reads all
// pointers from constant memory at the start, and computes the address of the output while the load is in flight.
#pragma once

// `OneElement` (one_element.py) passes both.
#ifndef INDEX
#define INDEX long long
#define BLOCK_THREADS 256
#endif

// Threads behind the last element process the last one again and store the same number. So the output must not be an input.
__device__ __forceinline__ INDEX element_of_thread(INDEX last) {
    const INDEX i = (INDEX)blockIdx.x * BLOCK_THREADS + threadIdx.x;
    return i < last ? i : last;
}

// An address in global memory that is computed here, for stores of some threads alone: the compiler would compute it, and read the pointer from
// constant memory, after the other threads have left, which is after the loads.
template <typename T> __device__ __forceinline__ T* address_now(T* address) {
    unsigned long long bits = __cvta_generic_to_global(address);
    asm volatile("" : "+l"(bits));
    return static_cast<T*>(__cvta_global_to_generic(bits));
}
