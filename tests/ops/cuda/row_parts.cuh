// kernelviz/ops/kernels/headers/row_parts.cuh for the processor: the same functions.
#pragma once

extern "C" float logf(float) noexcept;
inline float of_other_lane(float value, int mask) { return emulated::of_lane_with(value, mask); }
inline float exp2_fast(float v) { return exp2f(v); }
inline float natural_logarithm(float v) { return logf(v); }
