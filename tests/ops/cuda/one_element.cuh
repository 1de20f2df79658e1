// kernelviz/ops/kernels/headers/one_element.cuh for the processor, which has one kind of address.
#pragma once

#ifndef INDEX
#define INDEX long long
#define BLOCK_THREADS 256
#endif

inline INDEX element_of_thread() { return (INDEX)blockIdx.x * BLOCK_THREADS + threadIdx.x; }
template <typename T> T* address_now(T* address) { return address; }
