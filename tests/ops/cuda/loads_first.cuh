// kernelviz/ops/kernels/headers/loads_first.cuh for the processor.
#pragma once

template <class T> void loads_first(T&) {}
