// kernelviz/ops/kernels/headers/mma.cuh for the processor: the same functions.
#pragma once
#include "element_formats.cuh"

#define DYNAMIC_SHARED_ALIGNMENT 128
inline unsigned shared_memory() { return emulated::dynamic_shared_memory(); }
template <int BYTES> void copy_async(unsigned to, const void* from, bool valid) { emulated::copy_async(to, from, BYTES, valid); }
inline void commit_copies() { emulated::commit_copies(); }
template <int PENDING> void wait_for_copies() { emulated::wait_for_copies(PENDING); }

template <class T> void store_shared(unsigned to, T value) { emulated::store(to, &value, sizeof(T)); }
template <class T> void load_shared(T& value, unsigned from) { emulated::load(&value, from, sizeof(T)); }
inline void load_matrices(unsigned (&to)[4], unsigned row) { emulated::ldmatrix(to, row, false); }
inline void load_matrices_transposed(unsigned (&to)[4], unsigned row) { emulated::ldmatrix(to, row, true); }

template <class ELEMENT_TYPE> struct TensorCore {
    static void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) { emulated::mma(d, a, b, FORMAT_OF<ELEMENT_TYPE>); }
    static unsigned pair(float low, float high) {
        const ELEMENT_TYPE both[2] = {ELEMENT_TYPE(low), ELEMENT_TYPE(high)};
        unsigned bits;
        memcpy(&bits, both, 4);
        return bits;
    }
};
// cvt.rna.tf32.f32 of a finite number: to nearest, ties away from zero.
inline unsigned rounded_to_tf32(unsigned bits) { return (bits + 0x1000) & ~0x1fffu; }
