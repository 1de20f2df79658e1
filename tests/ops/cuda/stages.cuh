// kernelviz/ops/kernels/headers/stages.cuh has no instructions of its own beside those of tma.cuh, so the processor runs it as it is.
#pragma once
#include "../../../kernelviz/ops/kernels/headers/stages.cuh"
