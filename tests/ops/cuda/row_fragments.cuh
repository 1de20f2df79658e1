// The functions of kernelviz/ops/kernels/headers/row_fragments.cuh themselves, for the processor.
#pragma once

template <class T> T __shfl_xor_sync(unsigned, T value, int mask) { return emulated::of_lane_with(value, mask); }
#include "../../../kernelviz/ops/kernels/headers/row_fragments.cuh"
