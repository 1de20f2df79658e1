// kernelviz/ops/kernels/headers/one_element.cuh for the processor.
#pragma once

#ifndef INDEX
#define INDEX long long
#define BLOCK_THREADS 256
#endif

inline INDEX element_of_thread(INDEX last) {
    const INDEX i = (INDEX)blockIdx.x * BLOCK_THREADS + threadIdx.x;
    return i < last ? i : last;
}
template <typename T> T* address_now(T* address) { return address; }
