// kernelviz/ops/kernels/headers/packed.cuh for the processor.
#pragma once
#include "skinny.cuh"

template <class ELEMENT_TYPE, class F> unsigned of_pairs(unsigned a, unsigned b, unsigned c, F function) {
    ELEMENT_TYPE x[2], y[2], z[2];
    memcpy(x, &a, 4), memcpy(y, &b, 4), memcpy(z, &c, 4);
    const ELEMENT_TYPE both[2] = {ELEMENT_TYPE(function(float(x[0]), float(y[0]), float(z[0]))),
                                  ELEMENT_TYPE(function(float(x[1]), float(y[1]), float(z[1])))};
    unsigned bits;
    memcpy(&bits, both, 4);
    return bits;
}
template <class ELEMENT_TYPE> unsigned subtract_pairs(unsigned a, unsigned b) {
    return of_pairs<ELEMENT_TYPE>(a, b, 0, [](float x, float y, float) { return x - y; });
}
template <class ELEMENT_TYPE> unsigned multiply_pairs(unsigned a, unsigned b) {
    return of_pairs<ELEMENT_TYPE>(a, b, 0, [](float x, float y, float) { return x * y; });
}
template <class ELEMENT_TYPE> unsigned multiply_add_pairs(unsigned a, unsigned b, unsigned c) {
    return of_pairs<ELEMENT_TYPE>(a, b, c, [](float x, float y, float z) { return x * y + z; });
}
inline unsigned and_or(unsigned bits, unsigned mask, unsigned magic) { return (bits & mask) | magic; }
inline void write_shared(unsigned to, uint4 value) { emulated::store_alone(to, &value, 16); }
inline void write_shared(unsigned to, float value) { emulated::store_alone(to, &value, 4); }
inline float read_shared(unsigned from) {
    float value;
    emulated::load_alone(&value, from, 4);
    return value;
}
