// What kernels use of kernelviz/ops/kernels/headers/exponentials.cuh, for the processor.
#pragma once
#include "conversions.cuh"

constexpr float LOWEST = -3.4028234663852886e38f;
inline float exponential(float value) { return expf(value); }
template <class T> T minus_infinity() { return T(-INFINITE); }
struct Exponentials {
    float top, sum;
};
struct Merge {
    Exponentials operator()(Exponentials a, Exponentials b) const {
        const float top = fmaxf(a.top, b.top);
        return {top, a.sum * expf(a.top - top) + b.sum * expf(b.top - top)};
    }
};
template <class T, int VECTORS, class Keep> Exponentials exponentials_of(const Vec16<T> (&w)[VECTORS], Keep keep) {
    Exponentials all = {LOWEST, 0.0f};
    for (int k = 0; k < VECTORS; ++k) {
        for (const T element : w[k].e) {
            all.top = fmaxf(all.top, to_float(element));
        }
    }
    for (int k = 0; k < VECTORS; ++k) {
        for (int e = 0; e < Vec16<T>::WIDTH; ++e) {
            const float term = expf(to_float(w[k].e[e]) - all.top);
            all.sum += term;
            keep(k, e, term);
        }
    }
    return all;
}
struct Accumulate {
    Exponentials& into;
    template <class T, int VECTORS> void operator()(const Vec16<T> (&w)[VECTORS]) const {
        into = Merge()(into, exponentials_of(w, [](int, int, float) {}));
    }
};
