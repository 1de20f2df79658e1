// What kernels use of kernelviz/ops/kernels/headers/exponentials.cuh, for the processor.
#pragma once
#include "rows.cuh"

constexpr float LOWEST = -3.4028234663852886e38f;
inline float exponential(float value) { return expf(value); }
