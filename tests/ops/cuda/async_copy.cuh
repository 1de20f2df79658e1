// kernelviz/ops/kernels/headers/async_copy.cuh for the processor: the same functions.
#pragma once

inline float* dynamic_shared_memory() { return static_cast<float*>(emulated::dynamic_shared_pointer()); }
template <int BYTES, int TO, int FROM> void copy_async(float* to, const float* from, bool wanted) {
    if (wanted) {
        emulated::copy_async_alone(to + TO, from + FROM, BYTES, true);
    }
}
template <int BYTES> void copy_async_or_zero(float* to, const float* from, bool inside) { emulated::copy_async_alone(to, from, BYTES, inside); }
inline void commit_copies() { emulated::commit_copies(); }
template <int GROUPS> void wait_for_copies() { emulated::wait_for_copies(GROUPS); }
