// kernelviz/ops/kernels/headers/tiles_in_order.cuh has no instructions of its own, so the processor runs it as it is.
#pragma once
#include "../../../kernelviz/ops/kernels/headers/tiles_in_order.cuh"
