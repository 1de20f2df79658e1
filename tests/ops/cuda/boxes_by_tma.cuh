// kernelviz/ops/kernels/headers/boxes_by_tma.cuh has no instructions of its own beside those of tma.cuh and warpgroups.cuh, so the processor runs it
// as it is.
#pragma once
#include "../../../kernelviz/ops/kernels/headers/boxes_by_tma.cuh"
