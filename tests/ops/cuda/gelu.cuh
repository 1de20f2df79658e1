// kernelviz/ops/kernels/headers/gelu.cuh for the processor: the exact function, whatever the degree of the polynomial.
#pragma once

inline float exp2_fast(float v) { return exp2f(v); }
template <int DEGREE> float gelu_polynomial(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
