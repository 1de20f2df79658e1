// max(v, 0) that propagates NaN, for the processor.
#pragma once
#include "vec16.cuh"

template <typename T> T relu(const T& v) { return (float)v < 0.0f ? T(0.0f) : v; }
template <typename T> Vec16<T> relu(Vec16<T> vector) {
    for (T& v : vector.e) {
        v = relu(v);
    }
    return vector;
}
