// cp.async: copies from global to shared memory that a thread issues without waiting for them (sm_80 and later). CUDA C++ Programming
// Guide, "Asynchronous Data Copies". The copies are not ordered with other accesses of a thread: only wait_for_copies and a barrier
// say that they have arrived.

// The dynamic shared memory of the block.
__device__ __forceinline__ float* dynamic_shared_memory() {
    extern __shared__ __align__(16) float shared_memory[];
    return shared_memory;
}

// Copies BYTES (4 or 16) from `from + FROM` to `to + TO`, both counted in elements, if `wanted`. TO and FROM become part of the
// instruction. 16 bytes pass by L1, because no other block of the SM reads them.
template <int BYTES, int TO, int FROM>
__device__ __forceinline__ void copy_async(float* to, const float* from, bool wanted) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (BYTES == 16) {
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global [%0 + %3], [%1 + %4], 16; }" ::"r"(address),
                     "l"(from), "r"((int)wanted), "n"(4 * TO), "n"(4 * FROM));
    } else {
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.ca.shared.global [%0 + %3], [%1 + %4], 4; }" ::"r"(address),
                     "l"(from), "r"((int)wanted), "n"(4 * TO), "n"(4 * FROM));
    }
}

// Copies BYTES to shared memory, or writes zeros there if the elements are not `inside` of the matrix. `from` is not read then.
template <int BYTES>
__device__ __forceinline__ void copy_async_or_zero(float* to, const float* from, bool inside) {
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(inside ? 16 : 0));
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(inside ? 4 : 0));
    }
}

// Ends a group of copies.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most GROUPS of the latest groups of this thread's copies are under way.
template <int GROUPS>
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory"); }
