// kernelviz/ops/kernels/headers/wmma.cuh for the processor: the same functions.
#pragma once
#include "mma.cuh"

template <class ELEMENT_TYPE> struct Wmma {
    static constexpr int SIZE = sizeof(ELEMENT_TYPE), DEPTH = 32 / SIZE, REGISTERS = FORMAT_OF<ELEMENT_TYPE> == emulated::Format::FP16 ? 8 : 4;
    using Fragment = unsigned[REGISTERS];

    static void load_a(Fragment& to, const ELEMENT_TYPE* from, int pitch) { emulated::wmma_load(to, sizeof to, from, pitch * SIZE, DEPTH, SIZE); }
    static void load_b(Fragment& to, const ELEMENT_TYPE* from, int pitch) { emulated::wmma_load(to, sizeof to, from, pitch * SIZE, 16, SIZE); }
    static void multiply_add(float (&d)[8], const Fragment& a, const Fragment& b) { emulated::wmma(d, a, b, FORMAT_OF<ELEMENT_TYPE>); }
};
template <int STEP> void store_sums(float* to, const float (&sums)[8], int pitch) { emulated::wmma_store(to, sums, pitch * sizeof(float)); }
