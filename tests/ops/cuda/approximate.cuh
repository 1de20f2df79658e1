// kernelviz/ops/kernels/headers/approximate.cuh for the processor.
#pragma once

inline float larger(float a, float b) { return a > b || a != a ? a : b; }
inline float reciprocal_root(float v) { return 1.0f / __builtin_sqrtf(v); }
inline float reciprocal(float v) { return 1.0f / v; }
